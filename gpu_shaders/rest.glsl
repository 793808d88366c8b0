/* Without bones: nothing moves. */

struct Motion {
  vec3 displacement;
  mat3 jacobian;
};

Motion at_rest()
{
  return Motion(vec3(0.0), mat3(1.0));
}
