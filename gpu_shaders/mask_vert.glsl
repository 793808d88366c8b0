/* A bone at the very front of the depth buffer: an instance is a template placed by a matrix of `places`, moved
 * by a few pixels so that together they cover the lines and soft edges with which Blender draws it. */

vec4 place_row(int bone, int row)
{
  int i = 3 * bone + row;
  int width = textureSize(places, 0).x;
  return texelFetch(places, ivec2(i % width, i / width), 0);
}

void main()
{
  int bone = gl_InstanceID / (side * side);
  int tap = gl_InstanceID % (side * side);
  vec2 offset = spread * (2.0 * vec2(tap % side, tap / side) / float(side - 1) - 1.0); /* px */
  vec4 local = vec4(position, 1.0);
  vec3 world = vec3(dot(place_row(bone, 0), local), dot(place_row(bone, 1), local), dot(place_row(bone, 2), local));
  vec4 clip = to_clip * vec4(world, 1.0);
  clip.xy += pixel * offset * clip.w;
  gl_Position = vec4(clip.xy, -0.99999 * clip.w, clip.w);
}
