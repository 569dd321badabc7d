package fleet

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"muster/internal/wording"
)

// Foreign reports whether a file is probably not what it should be: no key of its mapping is
// known or similar to a known one. Messages then quote nothing from the file, because the
// caller who named it may have no right to read it (think of a link to /etc/shadow).
func Foreign(file *yaml.Node, known []string) bool {
	if file.Kind != yaml.MappingNode || len(file.Content) == 0 {
		return false
	}
	for i := 0; i+1 < len(file.Content); i += 2 {
		key := file.Content[i].Value
		if slices.Contains(known, key) || wording.Nearest(key, known) != "" {
			return false
		}
	}
	return true
}
