/* Blocks of uniforms. Memory layout std140: every member is made of four-component vectors. */

struct CameraBlock {
  mat4 projection; /* OpenGL clip space */
  vec4 viewport;   /* width and height (px), largest half extent of a splat (px), 1 when orthographic */
  vec4 shading;    /* elastic strength, what colours show, 1 for scene-linear output, 1 for outlines */
  ivec4 counts;    /* drawn items, 1 to mark splats without weights, 1 to draw only what is half opaque */
};

struct Item {
  mat4 to_view; /* rest space about the cloud's centre -> view space */
  mat4 turn;    /* rotation nearest to that map: takes colours' directions along */
  vec4 scales;  /* range of quantised gradients, elastic strength of the object, radius of the cloud */
  ivec4 rows;   /* first row in the drawing order, first row in the tables, first texel and degree of SH */
  ivec4 bones;  /* first bone, number of bones (0: not deformed) */
};

/* Rows of [A - 1 | A c + t - c], which moves a rest point relative to the cloud's centre c; how strongly
 * the bone is marked by the weight overlay. */
struct Bone {
  vec4 x;
  vec4 y;
  vec4 z;
  vec4 mark;
};
