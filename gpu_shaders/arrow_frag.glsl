/* One colour. */

void main()
{
  result = vec4(vec3(shade), 1.0);
}
