/* Without bones: nothing moves. */

struct Motion {
  vec3 displacement;
  mat3 jacobian;
};

Motion at_rest()
{
  Motion motion;
  motion.displacement = vec3(0.0);
  motion.jacobian = mat3(1.0);
  return motion;
}
