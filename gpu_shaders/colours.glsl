/* What a splat's colour shows. */

#define SHOW_COLOUR 0
#define SHOW_WEIGHT 1
#define SHOW_STRETCH 2
#define SHOW_DEPTH 3

vec3 to_scene_linear(vec3 c) /* sRGB transfer function */
{
  vec3 low = c / 12.92;
  vec3 high = pow((max(c, vec3(0.0)) + 0.055) / 1.055, vec3(2.4));
  return mix(low, high, step(vec3(0.04045), c)); /* both are 0.0031308 where they meet */
}

/* 0 blue, 0.25 cyan, 0.5 green, 0.75 yellow, 1 red: the scale of Blender's weight painting. */
vec3 heat(float value)
{
  float v = clamp(value, 0.0, 1.0) * 4.0;
  return clamp(vec3(v - 2.0, 2.0 - abs(v - 2.0), 2.0 - v), 0.0, 1.0);
}

/* White where lengths are kept, to red at twice the length and beyond, to blue where all is compressed. */
vec3 stretch_color(float factor)
{
  float octaves = clamp(log2(max(factor, 1.0e-6)), -1.0, 1.0);
  return octaves >= 0.0 ? vec3(1.0, 1.0 - octaves, 1.0 - octaves) : vec3(1.0 + octaves, 1.0 + octaves, 1.0);
}
