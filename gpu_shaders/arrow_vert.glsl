/* An arrow from the posed centre of a splat along R G, the direction in which the weight of the marked bones
 * grows at rest, carried along by the pose. It is as long as the gradient is steep, up to a limit. An instance
 * is an arrow; `part` is a corner of it: 0 tail, 1 neck, 2 tip; the distance from the shaft (px); its colour. */

#define LONGEST 0.07 /* of the cloud's radius */
#define HALF 4.0     /* gradient, over 1 / radius, of an arrow half as long */
#define LIFT 0.01    /* towards the eye, of the radius: over the splats of the surface */
#define SHORTEST 5.0 /* px */
#define HEAD 9.0     /* px, and at most this part of the arrow: */
#define HEAD_PART 0.5

vec3 lifted(vec3 v, float lift)
{
  return camera.viewport.w == 0.0 ? v * (1.0 - lift / max(length(v), 2.0 * lift)) : v + vec3(0.0, 0.0, lift);
}

void main()
{
  gl_Position = vec4(2.0, 2.0, 2.0, 1.0); /* outside */
  shade = part.z;
  int drawn = int(texel(order_table, gl_InstanceID).x);
  int i = item_of(drawn);
  int row = items[i].rows.y + drawn - items[i].rows.x;
  vec3 rest = texel(splat_table, 4 * row).xyz;
  vec2 pairs = vec2(texel(splat_table, 4 * row + 2).w, texel(splat_table, 4 * row + 3).w);
  Influences skin = read_influences(row, items[i].scales.x, pairs);
  Motion motion = blend(skin, items[i].bones.x, rest, camera.shading.x * items[i].scales.y);
  if (!usable(motion)) {
    motion = at_rest();
  }
  vec3 gradient = marked_gradient(skin, items[i].bones.x);
  vec3 direction = motion.jacobian * gradient;
  float radius = items[i].scales.z;
  float steepness = length(gradient) * radius;
  float size = length(direction);
  if (steepness == 0.0 || size == 0.0) {
    return;
  }
  float reach = LONGEST * radius * steepness / (steepness + HALF);
  vec3 start = rest + motion.displacement;
  float lift = LIFT * radius * length(items[i].to_view[2].xyz);
  vec3 tail = lifted((items[i].to_view * vec4(start, 1.0)).xyz, lift);
  vec3 tip = lifted((items[i].to_view * vec4(start + direction * (reach / size), 1.0)).xyz, lift);
  vec4 from = camera.projection * vec4(tail, 1.0);
  vec4 to = camera.projection * vec4(tip, 1.0);
  if (!(abs(from.z) <= from.w) || !(abs(to.z) <= to.w) || from.w <= 0.0 || to.w <= 0.0) {
    return;
  }
  vec2 half_size = 0.5 * camera.viewport.xy;
  vec2 along = (to.xy / to.w - from.xy / from.w) * half_size;
  float pixels = length(along);
  if (pixels < SHORTEST) {
    return;
  }
  vec2 forward = along / pixels;
  float head = min(HEAD, HEAD_PART * pixels);
  float rim = 1.0 - part.z; /* the dark arrow is a pixel larger all around */
  float place = part.x == 0.0 ? -rim : (part.x == 1.0 ? pixels - head - rim : pixels + 2.0 * rim);
  float side = part.y * (part.x == 1.0 && abs(part.y) > 2.5 ? head / HEAD : 1.0) + sign(part.y) * rim;
  float depth = mix(from.z / from.w, to.z / to.w, clamp(place / pixels, 0.0, 1.0));
  vec2 offset = place * forward + side * vec2(-forward.y, forward.x);
  gl_Position = vec4(from.xy / from.w + offset / half_size, depth, 1.0);
}
