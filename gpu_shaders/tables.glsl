/* Per-splat data lie in textures, row after row, whose width is a power of two. */

vec4 texel(sampler2D table, int i)
{
  int width = textureSize(table, 0).x;
  int digits = (floatBitsToInt(float(width)) >> 23) - 127; /* the exponent: log2 of the width */
  return texelFetch(table, ivec2(i & (width - 1), i >> digits), 0);
}
