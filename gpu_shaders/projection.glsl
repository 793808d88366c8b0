/* The ellipse of a splat on the screen: EWA splatting (Zwicker et al. 2002) as 3DGS has it. */

struct Ellipse {
  vec2 axis;    /* direction of the long half axis */
  vec2 sigma;   /* standard deviations along it and across, px */
};

/* Project a splat at v in view space, where Sigma = F F^T and F = to_view jacobian shape: row by row, which
 * takes a third less than the product of the matrices. */
Ellipse project(vec3 v, mat3 to_view, mat3 jacobian, mat3 shape)
{
  mat4 P = camera.projection;
  vec2 scale = 0.5 * camera.viewport.xy * vec2(P[0][0], P[1][1]);
  vec3 row_x = vec3(scale.x, 0.0, 0.0);
  vec3 row_y = vec3(0.0, scale.y, 0.0);
  if (camera.viewport.w == 0.0) { /* perspective: the Jacobian is kept within the frustum's edge */
    float w = -v.z;
    vec2 half_field = 1.0 / vec2(P[0][0], P[1][1]);
    vec2 centre = vec2(P[2][0], P[2][1]) * half_field;
    vec2 t = clamp(v.xy / w, centre - EDGE * half_field, centre + EDGE * half_field);
    row_x = vec3(scale.x, 0.0, scale.x * t.x) / w;
    row_y = vec3(0.0, scale.y, scale.y * t.y) / w;
  }
  vec3 m1 = ((row_x * to_view) * jacobian) * shape;
  vec3 m2 = ((row_y * to_view) * jacobian) * shape;
  float xx = dot(m1, m1), yy = dot(m2, m2), b = dot(m1, m2);
  vec3 area = cross(m1, m2); /* keeps the digits of needles, which xx yy - b b would lose */
  float determinant = dot(area, area) + LOW_PASS * (xx + yy) + LOW_PASS * LOW_PASS;
  float a = xx + LOW_PASS, c = yy + LOW_PASS;
  float half_difference = 0.5 * (a - c);
  float spread = sqrt(half_difference * half_difference + b * b);
  float large = 0.5 * (a + c) + spread;
  float along = abs(half_difference) + spread; /* of the two ways to write the axis, the one without cancelling */
  vec2 axis = a >= c ? vec2(along, b) : vec2(b, along);
  float size = length(axis);
  Ellipse ellipse;
  ellipse.axis = size > 0.0 ? axis / size : vec2(1.0, 0.0);
  ellipse.sigma = sqrt(vec2(large, determinant / large));
  return ellipse;
}
