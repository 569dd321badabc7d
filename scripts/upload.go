package scripts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

func readUpload(p *parser, v value) *UploadSpec {
	u := &UploadSpec{Mode: defaultMode}
	seen := readMapping(p, v, uploadKeys(), u)
	if !v.isMapping() {
		return u
	}
	var sources []string
	for _, name := range []string{"from", "blob", "content"} {
		if one, ok := seen[name]; ok {
			sources = append(sources, name)
			if len(sources) == 2 {
				p.add(at(one.keyNode), "%s and %s exclude each other: keep one", name, sources[0])
			}
		}
	}
	if len(sources) == 0 {
		p.add(at(v.Node), "upload has nothing to send: "+
			"give from (an argument of type file), blob or content")
	}
	if _, ok := seen["to"]; !ok {
		p.add(at(v.Node), "upload has no to: say where the file belongs")
	}
	return u
}

func uploadKeys() []key[UploadSpec] {
	return []key[UploadSpec]{
		{"from", func(p *parser, v value, u *UploadSpec) { u.From = p.from(v) }},
		{"blob", func(p *parser, v value, u *UploadSpec) { u.Blob = p.blob(v) }},
		{"content", func(p *parser, v value, u *UploadSpec) { u.Content = p.content(v) }},
		{"to", func(p *parser, v value, u *UploadSpec) { u.To = p.to(v) }},
		{"mode", func(p *parser, v value, u *UploadSpec) { u.Mode = p.mode(v) }},
	}
}

// from reads the name of an argument of type file.
func (p *parser) from(v value) string {
	name, ok := p.text(v, nameMax)
	if !ok {
		return ""
	}
	a := p.argument(name)
	switch {
	case a == nil:
		var files []string
		for _, a := range p.arguments {
			if a.Type == TypeFile {
				files = append(files, a.Name)
			}
		}
		p.add(at(v.Node), "from: no argument %s of type file: %s",
			brief(name), Instead(name, files))
	case a.Type != "" && a.Type != TypeFile:
		p.add(at(v.Node), "from: argument %q is of type %s, want file", name, a.Type)
	}
	return name
}

// blob reads the name of a stored content.
func (p *parser) blob(v value) string {
	text, ok := p.text(v, wordMax)
	if !ok {
		return ""
	}
	sum, err := ParseBlob(text)
	if err != nil {
		p.add(at(v.Node), "blob: %s", err)
	}
	return sum
}

// content reads a file written in the runbook. The host gets it unchanged, so a placeholder
// in it is probably a misunderstanding.
func (p *parser) content(v value) string {
	text, _ := p.text(v, textMax)
	t, _ := cut(text)
	var faults []fault
	for _, hole := range t.placeholders() {
		if isGiven(hole.ref) || p.argument(hole.ref) != nil {
			faults = append(faults, fault{hole.start, fmt.Sprintf("{{%s}} would not be replaced: "+
				"content is sent as it is; make the file an argument, or write it in a step of "+
				"kind run", hole.ref)})
		}
	}
	p.faults(v, faults)
	return text
}

func (p *parser) to(v value) string {
	text, ok := p.text(v, pathMax)
	if !ok {
		return ""
	}
	t, good := p.template(v, text)
	if good && len(t.placeholders()) == 0 {
		// fill, because four braces still stand for two
		to, _ := t.fill(scope{}, plain)
		if err := checkPath(to); err != nil {
			p.add(at(v.Node), "to: %s", err)
		}
	}
	return text
}

// checkPath returns an error unless a file may be put at a path. The path must be absolute
// and without detours, so that a value in it cannot lead elsewhere.
func checkPath(to string) error {
	switch {
	case len(to) > pathMax:
		return fmt.Errorf("path %s has %d bytes: at most %d", brief(to), len(to), pathMax)
	case strings.ContainsFunc(to, func(r rune) bool { return r < ' ' || r == 0x7F }):
		return fmt.Errorf("path %s has a control character", brief(to))
	case !path.IsAbs(to) || path.Clean(to) != to || to == "/":
		return fmt.Errorf("path %s: want an absolute one to a file, without '.', '..', '//' "+
			"and '/' at the end", brief(to))
	}
	return nil
}

// mode reads permission bits, which are octal with or without quotes.
func (p *parser) mode(v value) uint32 {
	text, ok := p.text(v, wordMax)
	if !ok {
		return 0
	}
	bits, err := strconv.ParseUint(text, 8, 32)
	if err != nil || bits > 0o777 || len(text) < 3 || len(text) > 4 {
		p.add(at(v.Node), `mode %s: want permission bits in octal, "0000" to "0777"`, brief(text))
		return 0
	}
	return uint32(bits)
}

// InlineMax is the largest file that a task should contain itself, in bytes. A larger file
// should be a blob, because every worker reads the whole task.
const InlineMax = 256 << 10

// blobPrefix begins the name of a stored content.
const blobPrefix = "sha256:"

// ParseBlob reads the name of a stored content: sha256: and its sum in 64 hex digits.
// It returns the digits in lower case.
func ParseBlob(name string) (sum string, err error) {
	sum, found := strings.CutPrefix(name, blobPrefix)
	sum = strings.ToLower(sum)
	if raw, err := hex.DecodeString(sum); !found || err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("%s is no name of a blob: want sha256: and 64 hex digits, as "+
			"`muster blob ls` shows them", brief(name))
	}
	return sum, nil
}

// BlobName returns the name that ParseBlob reads.
func BlobName(sum string) string { return blobPrefix + sum }

// Blobs returns the contents, by SHA-256 in hex, that must be stored for the runbook with
// these arguments, because steps or arguments of type file name them.
func (r *Runbook) Blobs(args map[string]string) []string {
	need := map[string]bool{}
	for _, s := range r.Steps {
		if s.Upload != nil && s.Upload.Blob != "" {
			need[s.Upload.Blob] = true
		}
	}
	for _, a := range r.Arguments {
		if a.Type != TypeFile {
			continue
		}
		if sum, err := ParseBlob(args[a.Name]); err == nil {
			need[sum] = true
		}
	}
	return slices.Sorted(maps.Keys(need))
}

// bindBlob records the size of a stored content.
func (v *Values) bindBlob(sum string, stored map[string]int64) error {
	size, ok := stored[sum]
	if !ok {
		return fmt.Errorf("blob %s is not there: put it there with `muster blob put FILE`",
			BlobName(sum))
	}
	put(&v.Blobs, sum, size)
	return nil
}
