/* A picture drawn off-screen, over what is there; or only what it leaves of what is there. */

void main()
{
  vec4 color = texelFetch(picture, ivec2(gl_FragCoord.xy), 0);
  result = transmit ? vec4(1.0 - color.a) : color;
}
