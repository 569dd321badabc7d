package windows

// Alike is a place without its host, where nothing is agreed about that alone: what
// holds for one of such hosts holds for all of them.
func (b *Book) Alike(p Place) Place { return b.alike(p) }
