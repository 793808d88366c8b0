/* Colour seen along a direction: real spherical harmonics in the convention of 3DGS (Kerbl et al. 2023). */

vec3 sh_color(int first, int degree, vec3 base, vec3 d)
{
  vec3 color = vec3(0.5) + 0.28209479 * base;
  if (degree == 0) {
    return color;
  }
  vec4 t0 = texel(sh_table, first);
  vec4 t1 = texel(sh_table, first + 1);
  vec4 t2 = texel(sh_table, first + 2);
  color += 0.48860251 * (-d.y * t0.xyz + d.z * vec3(t0.w, t1.xy) - d.x * vec3(t1.zw, t2.x));
  if (degree == 1) {
    return color;
  }
  vec3 s = d * d;
  float xy = d.x * d.y;
  vec4 t3 = texel(sh_table, first + 3);
  vec4 t4 = texel(sh_table, first + 4);
  vec4 t5 = texel(sh_table, first + 5);
  color += 1.09254843 * (xy * t2.yzw - d.y * d.z * t3.xyz - d.x * d.z * vec3(t4.zw, t5.x)) +
           0.31539157 * (2.0 * s.z - s.x - s.y) * vec3(t3.w, t4.xy) +
           0.54627422 * (s.x - s.y) * t5.yzw;
  if (degree == 2) {
    return color;
  }
  vec4 t6 = texel(sh_table, first + 6);
  vec4 t7 = texel(sh_table, first + 7);
  vec4 t8 = texel(sh_table, first + 8);
  vec4 t9 = texel(sh_table, first + 9);
  vec4 ta = texel(sh_table, first + 10);
  vec4 tb = texel(sh_table, first + 11);
  float ring = 4.0 * s.z - s.x - s.y;
  color += -0.59004359 * d.y * (3.0 * s.x - s.y) * t6.xyz +
           2.89061144 * xy * d.z * vec3(t6.w, t7.xy) -
           0.45704580 * d.y * ring * vec3(t7.zw, t8.x) +
           0.37317633 * d.z * (2.0 * s.z - 3.0 * s.x - 3.0 * s.y) * t8.yzw -
           0.45704580 * d.x * ring * t9.xyz +
           1.44530572 * d.z * (s.x - s.y) * vec3(t9.w, ta.xy) -
           0.59004359 * d.x * (s.x - 3.0 * s.y) * vec3(ta.zw, tb.x);
  return color;
}
