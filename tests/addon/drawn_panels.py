"""Panels and lists drawn into a recorder that refuses properties, operators and icons that are not there."""

from types import SimpleNamespace

import bpy

ICONS = bpy.types.UILayout.bl_rna.functions["label"].parameters["icon"].enum_items


class Layout:
    """Stands in for UILayout, and for all layouts within it.

    texts, labels : what it says, alone and with icons; properties, searches : names of those shown
    buttons : settings by their names; menus : names of buttons that open one
    lists : what they show, by their kind
    """

    def __init__(self, above=None, opened=True):
        self.enabled, self.opened = True, opened
        if above is not None:
            self.__dict__.update(above.__dict__, enabled=True)
            return
        self.texts, self.labels, self.properties, self.searches, self.menus = [], [], [], [], []
        self.buttons, self.lists = {}, {}

    @property
    def words(self):
        return " ".join(self.texts)

    def label(self, text="", icon="NONE"):
        assert icon in ICONS, icon
        self.texts.append(text)
        self.labels.append((text, icon))

    def progress(self, factor=0.0, text=""):
        self.texts.append(text)

    def prop(self, data, name, text=None, icon="NONE", emboss=True):
        assert name in data.bl_rna.properties, f"{data} has no property {name}"
        assert icon in ICONS, icon
        self.properties.append(name)

    def prop_search(self, data, name, search_data, search_name, text="", icon="NONE"):
        assert name in data.bl_rna.properties and len(getattr(search_data, search_name))
        self.searches.append(name)

    def operator(self, idname, text="", icon="NONE", depress=False):
        assert icon in ICONS, icon
        kind = _kind(idname)
        self.buttons[text or kind.name] = button = Button(kind, depress, self.enabled)
        return button

    def operator_menu_enum(self, idname, name, text="", icon="NONE"):
        kind = _kind(idname)
        assert name in kind.properties and icon in ICONS
        self.menus.append(text or kind.name)

    def template_list(self, kind, id, data, name, active_data, active_name, rows=5):
        assert hasattr(bpy.types, kind) and active_name in active_data.bl_rna.properties
        self.lists[kind] = getattr(data, name)

    def panel(self, idname):
        return self, self if self.opened else None

    def row(self, **_):
        return Layout(self)

    column = box = split = row


class Button:
    """Settings of a button, only those the operator has."""

    def __init__(self, kind, depress, enabled):
        self.__dict__.update(kind=kind, depress=depress, enabled=enabled)

    def __setattr__(self, name, value):
        assert name in self.kind.properties, f"{self.kind.identifier} has no property {name}"
        self.__dict__[name] = value


class Context:
    """Blender's context as a sidebar 320 pixels wide sees it."""

    region = SimpleNamespace(width=320)
    preferences = SimpleNamespace(system=SimpleNamespace(ui_scale=1.0))

    def __getattr__(self, name):
        return getattr(bpy.context, name)


def draw(name, opened=True):
    """Draw one of our panels; `opened`: with the panels within it unfolded."""
    panel = getattr(bpy.types, f"GAUSSIANIMATE_PT_{name}")
    methods = {key: value for key, value in vars(panel).items() if callable(value)}
    drawn = type("Drawn", (), methods)()
    drawn.layout = Layout(opened=opened)
    drawn.draw(Context())
    return drawn.layout


def said(name):
    return draw(name).words


def _kind(idname):
    module, name = idname.split(".")
    return getattr(getattr(bpy.ops, module), name).get_rna_type()
