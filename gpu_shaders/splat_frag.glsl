/* The Gaussian falloff, premultiplied. */

const float OUTLINE = 2.0;        /* standard deviations */
const float OUTLINE_WIDTH = 0.35;

void main()
{
  float alpha = tint.a * exp(-0.5 * dot(offset, offset));
  if (alpha < ALPHA_CUT) {
    discard;
  }
  if (camera.shading.w != 0.0) {
    float ring = abs(length(offset) - OUTLINE) / OUTLINE_WIDTH;
    alpha = ring < 1.0 ? 1.0 : 0.3 * alpha;
  }
  result = vec4(tint.rgb * alpha, alpha);
}
