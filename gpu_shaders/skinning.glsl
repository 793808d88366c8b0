/* Linear blend skinning and its exact spatial derivative, in displacements: bones at rest add exactly 0.
 *
 *   p' = p + d,  d = sum_j w_j d_j,  d_j = (A_j - 1) p + b_j
 *   R  = 1 + sum_j w_j (A_j - 1) + eta sum_j (d_j - d) G_j^T
 */

struct Influences {
  int bone[INFLUENCES]; /* -1: static */
  float weight[INFLUENCES];
  vec3 gradient[INFLUENCES];
};

#define LARGEST 1.0e15 /* of motions; bones that are broken come with more (NaN is not reliable) */

struct Motion {
  vec3 displacement;
  mat3 jacobian;
};

#if defined(SKIN_EXACT)
/* Two bones share a float, each counted from the static one. */
int bone_of(vec2 pairs, int k)
{
  int pair = int(pairs[k / 2]);
  return (k % 2 == 0 ? pair & 4095 : pair >> 12) - 1;
}

Influences read_influences(int row, float range, vec2 pairs)
{
  Influences skin;
  for (int k = 0; k < INFLUENCES; k++) {
    vec4 value = texel(skin_table, row * INFLUENCES + k);
    skin.bone[k] = bone_of(pairs, k);
    skin.weight[k] = value.w;
    skin.gradient[k] = value.xyz;
  }
  return skin;
}
#else
/* The last weight is what is missing to 1, the last gradient what is missing to 0. */
Influences complete(Influences skin)
{
  skin.weight[INFLUENCES - 1] = 1.0;
  skin.gradient[INFLUENCES - 1] = vec3(0.0);
  for (int k = 0; k < INFLUENCES - 1; k++) {
    skin.weight[INFLUENCES - 1] -= skin.weight[k];
    skin.gradient[INFLUENCES - 1] -= skin.gradient[k];
  }
  skin.weight[INFLUENCES - 1] = max(skin.weight[INFLUENCES - 1], 0.0);
  return skin;
}

int bone_of(float byte)
{
  int bone = int(byte * 255.0 + 0.5);
  return bone == 255 ? -1 : bone;
}

#  if defined(SKIN_PAPER10)
/* Two 8-bit bones and weights, two gradients of three 8-bit values, stored with an offset of 128. */
Influences read_influences(int row, float range, vec2 pairs)
{
  Influences skin;
  vec4 head = texel(skin_table, 2 * row);
  vec4 tail = texel(skin_table, 2 * row + 1);
  skin.bone[0] = bone_of(head.x);
  skin.bone[1] = bone_of(head.y);
  skin.weight[0] = head.z;
  skin.gradient[0] = (floor(tail.xyz * 255.0 + 0.5) - 128.0) * (range / 127.0);
  return complete(skin);
}
#  else
/* 8-bit bones; all but the last weight and gradient with 16 bits, gradients with an offset of 32768. */
Influences read_influences(int row, float range, vec2 pairs)
{
  Influences skin;
  vec4 bones = texel(bone_table, row);
  for (int k = 0; k < INFLUENCES; k++) {
    skin.bone[k] = bone_of(bones[k]);
  }
  for (int k = 0; k < INFLUENCES - 1; k++) {
    vec4 value = texel(skin_table, row * (INFLUENCES - 1) + k);
    skin.weight[k] = value.x;
    skin.gradient[k] = (floor(value.yzw * 65535.0 + 0.5) - 32768.0) * (range / 32767.0);
  }
  return complete(skin);
}
#  endif
#endif

Bone read_bone(int index)
{
#ifdef BONES_IN_TABLE
  Bone bone;
  bone.x = texel(bones_table, 4 * index);
  bone.y = texel(bones_table, 4 * index + 1);
  bone.z = texel(bones_table, 4 * index + 2);
  bone.mark = texel(bones_table, 4 * index + 3);
  return bone;
#else
  return bones[index];
#endif
}

Motion at_rest()
{
  Motion motion;
  motion.displacement = vec3(0.0);
  motion.jacobian = mat3(1.0);
  return motion;
}

bool usable(Motion motion)
{
  vec3 size = abs(motion.displacement) + abs(motion.jacobian[0]) + abs(motion.jacobian[1]) +
              abs(motion.jacobian[2]);
  return dot(size, vec3(1.0)) < LARGEST;
}

Motion blend(Influences skin, int first_bone, vec3 p, float eta)
{
  Motion motion = at_rest();
  vec3 moved[INFLUENCES];
  mat3 change = mat3(0.0); /* of the rows: transposed */
  bool broken = false;
  for (int k = 0; k < INFLUENCES; k++) {
    moved[k] = vec3(0.0);
    if (skin.bone[k] >= 0) {
      Bone bone = read_bone(first_bone + skin.bone[k]);
      broken = broken || (bone.x.w > LARGEST && (skin.weight[k] != 0.0 || dot(abs(skin.gradient[k]), vec3(1.0)) != 0.0));
      moved[k] = vec3(dot(bone.x.xyz, p), dot(bone.y.xyz, p), dot(bone.z.xyz, p)) +
                 vec3(bone.x.w, bone.y.w, bone.z.w);
      change += skin.weight[k] * mat3(bone.x.xyz, bone.y.xyz, bone.z.xyz);
    }
    motion.displacement += skin.weight[k] * moved[k];
  }
  motion.jacobian += transpose(change);
  if (broken) {
    motion.displacement = vec3(LARGEST);
  }
  if (eta != 0.0) {
    for (int k = 0; k < INFLUENCES; k++) {
      motion.jacobian += outer(moved[k] - motion.displacement, eta * skin.gradient[k]);
    }
  }
  return motion;
}

/* How strongly the marked bones hold a splat, 0 to 1; -1 where only the static bone does. */
float marked_weight(Influences skin, int first_bone)
{
  float marked = 0.0;
  float total = 0.0;
  for (int k = 0; k < INFLUENCES; k++) {
    if (skin.bone[k] >= 0) {
      marked += skin.weight[k] * read_bone(first_bone + skin.bone[k]).mark.x;
      total += skin.weight[k];
    }
  }
  return total > 0.0 ? marked : -1.0;
}

/* The gradient of the marked bones' weight, at rest. */
vec3 marked_gradient(Influences skin, int first_bone)
{
  vec3 gradient = vec3(0.0);
  for (int k = 0; k < INFLUENCES; k++) {
    if (skin.bone[k] >= 0) {
      gradient += read_bone(first_bone + skin.bone[k]).mark.x * skin.gradient[k];
    }
  }
  return gradient;
}
