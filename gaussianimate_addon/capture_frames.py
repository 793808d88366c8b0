"""stub"""


def transform_frames(object, matrix):
    pass
