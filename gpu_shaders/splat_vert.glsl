/* One corner of a splat's triangle: skins the splat, projects it, and colours it. An instance is a batch of
 * splats, which `corner.z` counts: drivers fill their vector units with vertices of one instance only. */

void main()
{
  gl_Position = vec4(2.0, 2.0, 2.0, 1.0); /* outside, for splats that are not drawn */
  offset = vec2(0.0);
  limit = vec2(0.0);
  tint = vec4(0.0);

  int slot = gl_InstanceID * BATCH + int(corner.z);
  if (slot >= drawn_count) {
    return;
  }
  int drawn = int(texel(order_table, slot).x);
  int i = item_of(drawn);
  int local = drawn - items[i].rows.x;
  int row = items[i].rows.y + local;
  vec4 place = texel(splat_table, 4 * row);      /* rest position, opacity */
  vec4 rotation = texel(splat_table, 4 * row + 1);
  vec4 scales = texel(splat_table, 4 * row + 2); /* and two bones */
  vec4 base = texel(splat_table, 4 * row + 3);   /* colour, and two bones */
  float opacity = place.w;
  if (opacity < ALPHA_CUT) {
    return;
  }

  int show = int(camera.shading.y);
  Motion motion = at_rest();
  float marked = 0.0;
#ifdef DEFORM
  if (items[i].bones.y > 0) {
    Influences skin = read_influences(row, items[i].scales.x, vec2(scales.w, base.w));
    Motion blended = blend(skin, items[i].bones.x, place.xyz, camera.shading.x * items[i].scales.y);
    if (usable(blended)) {
      motion = blended;
    }
    if (show == SHOW_WEIGHT || camera.counts.y != 0) {
      marked = marked_weight(skin, items[i].bones.x);
    }
  }
#endif
  vec3 v = (items[i].to_view * vec4(place.xyz + motion.displacement, 1.0)).xyz;
  vec4 clip = camera.projection * vec4(v, 1.0);
  if (!(abs(clip.z) <= clip.w) || clip.w <= 0.0) {
    return;
  }
  mat3 shape = rotation_of(rotation);
  shape[0] *= scales.x;
  shape[1] *= scales.y;
  shape[2] *= scales.z;
  Ellipse ellipse = project(v, mat3(items[i].to_view), motion.jacobian, shape);

  float reach = sqrt(2.0 * log(opacity / ALPHA_CUT)); /* standard deviations until nothing is seen */
  vec2 whole = reach * ellipse.sigma;
  vec2 extent = min(whole, vec2(camera.viewport.z));
  /* The triangle is about the ellipse or, where that is cut, about what is left: 1.37 > (1 + sqrt 3) / 2. */
  bool is_cut = extent.x < whole.x || extent.y < whole.y;
  vec2 along = corner.xy * extent * (is_cut ? 1.37 : 1.0);
  vec2 pixels = along.x * ellipse.axis + along.y * vec2(-ellipse.axis.y, ellipse.axis.x);
  offset = along / ellipse.sigma;
  limit = extent / ellipse.sigma;
  vec3 ndc = clip.xyz / clip.w;
  gl_Position = vec4(ndc.xy + 2.0 * pixels / camera.viewport.xy, ndc.z, 1.0);

  vec3 color = vec3(-v.z);
  if (show == SHOW_COLOUR) {
    int degree = items[i].rows.w;
    vec3 direction = vec3(0.0);
    if (degree > 0) {
      vec3 seen = camera.viewport.w == 0.0 ? normalize(v) : vec3(0.0, 0.0, -1.0);
      direction = seen * mat3(items[i].turn); /* transposed: into the object's space */
#ifdef DEFORM
      if (!is_identity(motion.jacobian)) {
        direction = direction * polar_rotation(motion.jacobian); /* transposed: into the rest pose */
      }
#endif
    }
    int texels = degree == 1 ? 3 : (degree == 2 ? 6 : 12);
    color = max(sh_color(items[i].rows.z + local * texels, degree, base.rgb, direction), vec3(0.0));
  }
  else if (show == SHOW_WEIGHT) {
    color = heat(marked);
  }
  else if (show == SHOW_STRETCH) {
    color = stretch_color(largest_stretch(motion.jacobian));
  }
  if (camera.counts.y != 0 && marked < 0.0) {
    color = vec3(1.0, 0.0, 1.0);
  }
#ifdef MASK
  float selected = texel(mask_table, row).x; /* negative: not of the object that is drawn on */
  if (selected >= 0.0) {
    color = selected > 0.0 ? mix(color, heat(selected), 0.85) : 0.6 * color;
  }
#endif
  if (camera.shading.z != 0.0 && show != SHOW_DEPTH) {
    color = to_scene_linear(color);
  }
  tint = vec4(color, opacity);
}
