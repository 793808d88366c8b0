/* The Gaussian falloff, premultiplied; or the outline of the splat, a disc of its colour with a darker rim. */

#define OUTLINE 2.0   /* standard deviations */
#define RIM 1.5       /* px, and at most this part of the radius: */
#define RIM_PART 0.15
#define RIM_SHADE 0.3 /* of the colour */

void main()
{
  float radius = length(offset);
  float pixel = max(fwidth(radius), 1.0e-6); /* before anything is discarded, which would spoil it */
  if (abs(offset.x) > limit.x || abs(offset.y) > limit.y) { /* the triangle is larger than the splat's rectangle */
    discard;
  }
  if (camera.shading.w != 0.0) {
    float inside = (OUTLINE - radius) / pixel; /* px from the outline */
    float alpha = tint.a * clamp(inside + 0.5, 0.0, 1.0);
    if (alpha < ALPHA_CUT) {
      discard;
    }
    float rim = clamp(min(RIM, RIM_PART * OUTLINE / pixel) + 0.5 - inside, 0.0, 1.0);
    result = vec4(tint.rgb * mix(1.0, RIM_SHADE, rim) * alpha, alpha);
    return;
  }
  float alpha = tint.a * exp(-0.5 * radius * radius);
  if (alpha < (camera.counts.z != 0 ? 0.5 : ALPHA_CUT)) {
    discard;
  }
  result = vec4(tint.rgb * alpha, alpha);
}
