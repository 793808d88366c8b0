/* The depth of another framebuffer. */

void main()
{
  gl_FragDepth = texelFetch(depths, ivec2(gl_FragCoord.xy), 0).x;
}
