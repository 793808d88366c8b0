/* Per-splat data lie in textures, row after row: texel i is at (i mod width, i / width). */

vec4 texel(sampler2D table, int i)
{
  int width = textureSize(table, 0).x;
  return texelFetch(table, ivec2(i % width, i / width), 0);
}
