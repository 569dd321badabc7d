package windows

// Alike returns the place without its host, if no window and no freeze is for that host alone:
// hosts with equal results have the same windows and freezes.
func (b *Book) Alike(p Place) Place { return b.alike(p) }
