"""The meshes of groups, from MESHCOLL_MESH and their ranks."""

from meshcoll.torch import mesh_of_group

EXPECTED = {
    ("box=2,gpu=4", (0, 1, 2, 3)): "gpu=4",
    ("box=2,gpu=4", (4, 5, 6, 7)): "gpu=4",
    ("box=2,gpu=4", (1, 5)): "box=2",
    ("box=2,gpu=4", (0, 1, 4, 5)): "box=2,gpu=2",
    ("box=2,gpu=4", (0, 1, 2, 3, 4, 5, 6, 7)): "box=2,gpu=4",
    ("rack=2,box=2,gpu=2", (1, 3, 5, 7)): "rack=2,box=2",
    ("box=2,gpu=4", (0, 5)): "",  # no line of the mesh
    ("box=2,gpu=4", (5, 1)): "",  # in another order
    ("box=2,gpu=4", (3,)): "",
    ("box=4+3", (0, 1)): "",
    ("", (0, 1)): "",
}
wrong = [(arguments, want, mesh_of_group(arguments[1], arguments[0]))
         for arguments, want in EXPECTED.items() if mesh_of_group(arguments[1], arguments[0]) != want]
print(f"failed: meshes of groups: {wrong}" if wrong else "passed: meshes of groups")
raise SystemExit(bool(wrong))
