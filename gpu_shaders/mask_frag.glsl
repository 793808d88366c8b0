/* Only the depth counts. */

void main()
{
  result = vec4(0.0);
}
