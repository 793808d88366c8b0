/* The whole viewport. */

void main()
{
  gl_Position = vec4(corner, -0.9999, 1.0); /* behind nothing but what is at the very front */
}
