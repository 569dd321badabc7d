package codec

import "encoding/json"

// Fields of a task in which what was signed lies beside its spec.
const (
	FieldOrder      = "order"      // the bytes of the order
	FieldSignatures = "signatures" // a JSON list of texts
	FieldShare      = "share:"     // its number follows: the lines of a share of the hosts
)

// Signatures returns the stored form of signatures.
func Signatures(texts []string) (string, error) {
	b, err := json.Marshal(texts)
	return string(b), err
}
