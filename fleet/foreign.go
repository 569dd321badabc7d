package fleet

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"muster/internal/wording"
)

// Foreign reports whether a file is another than it should be: none of the keys of its
// mapping is known, or comes near to one that is. Whoever named it may have no right to read
// it, as with a link to /etc/shadow, so a message about it repeats nothing of it.
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
