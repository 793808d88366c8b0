/* Per-splat data lie in textures, row after row, whose width is a power of two. */

vec4 texel(sampler2D table, int i)
{
  int width = textureSize(table, 0).x;
  return texelFetch(table, ivec2(i & (width - 1), i >> findMSB(width)), 0);
}
