/* Rotations and stretches of 3x3 matrices. */

mat3 rotation_of(vec4 q) /* wxyz, unit */
{
  float w = q.x, x = q.y, y = q.z, z = q.w;
  return mat3(1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y),
              2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x),
              2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y));
}

mat3 outer(vec3 u, vec3 v) /* u v^T */
{
  return mat3(u * v.x, u * v.y, u * v.z);
}

bool is_identity(mat3 m)
{
  vec3 off = abs(m[0] - vec3(1.0, 0.0, 0.0)) + abs(m[1] - vec3(0.0, 1.0, 0.0)) + abs(m[2] - vec3(0.0, 0.0, 1.0));
  return dot(off, vec3(1.0)) == 0.0;
}

mat3 cofactors(mat3 m)
{
  return mat3(cross(m[1], m[2]), cross(m[2], m[0]), cross(m[0], m[1]));
}

/* The eigenvector of the largest eigenvalue of a symmetric matrix: any column but the shortest of a high power
 * of it. Where eigenvalues are equal the last axis is preferred, so that neighbours agree. */
vec3 leading_direction(mat3 m)
{
  for (int i = 0; i < 8; i++) {
    float size = max(max(dot(m[0], m[0]), dot(m[1], m[1])), dot(m[2], m[2]));
    m = m * inversesqrt(max(size, 1.0e-36));
    m = m * m;
  }
  vec3 squares = vec3(dot(m[0], m[0]), dot(m[1], m[1]), dot(m[2], m[2]));
  float enough = 0.5 * max(max(squares.x, squares.y), squares.z);
  return normalize(squares.z >= enough ? m[2] : (squares.y >= enough ? m[1] : m[0]));
}

/* The rotation nearest to m (never a mirror), by Newton's iteration for the orthogonal polar factor with
 * Frobenius scaling (Higham 1986). */
mat3 polar_rotation(mat3 m)
{
  float size = dot(m[0], m[0]) + dot(m[1], m[1]) + dot(m[2], m[2]);
  mat3 x = m * inversesqrt(max(size, 1.0e-36));
  float volume = dot(x[0], cross(x[1], x[2]));
  if (abs(volume) < 1.0e-6) { /* flat: the cofactors have the same factor, and are large across the plane */
    x += cofactors(x);
    volume = dot(x[0], cross(x[1], x[2]));
    if (volume < 1.0e-12) {
      return mat3(1.0); /* a line or a point: no rotation is nearest */
    }
  }
  x = x * sqrt(3.0); /* the size of a rotation, which saves a step where m is nearly one */
  for (int i = 0; i < 8; i++) {
    mat3 adjugate = cofactors(x);
    mat3 y = adjugate * (1.0 / dot(x[0], adjugate[0])); /* inverse, transposed */
    float xx = dot(x[0], x[0]) + dot(x[1], x[1]) + dot(x[2], x[2]);
    float yy = dot(y[0], y[0]) + dot(y[1], y[1]) + dot(y[2], y[2]);
    float scale = sqrt(sqrt(yy / xx));
    x = 0.5 * scale * x + (0.5 / scale) * y;
    if (abs(xx - 3.0) + abs(yy - 3.0) < 1.0e-5) {
      break;
    }
  }
  if (volume < 0.0) { /* turn the weakest axis over */
    mat3 stretch = transpose(x) * m; /* symmetric */
    vec3 weakest = leading_direction(cofactors(stretch));
    x -= outer(x * weakest, 2.0 * weakest);
  }
  return x;
}

/* The largest singular value of m. */
float largest_stretch(mat3 m)
{
  return length(m * leading_direction(transpose(m) * m));
}
