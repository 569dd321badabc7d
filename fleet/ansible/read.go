package ansible

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"muster/fleet"
	"muster/internal/lazyregexp"
)

// File is one file, or the output of a program: its name, for messages, and its
// contents.
type File struct {
	Name string
	Data []byte
}

// VarsFile is a file of variables below a folder group_vars or host_vars.
type VarsFile struct {
	Hosts bool   // from host_vars
	Path  string // relative to that folder: web.yml, web/users.yml
	File
}

// Tree is one inventory: files that are merged as Ansible merges those of a folder, where
// later ones win, and the files of variables beside them.
type Tree struct {
	Files []File
	Vars  []VarsFile
}

// Options are values that the files themselves do not contain.
type Options struct {
	Home string // value of "~" in the path of a key; empty: "~" is kept
}

// Form is the syntax of a file.
type Form string

// The forms of files.
const (
	FormINI  Form = "ini"
	FormYAML Form = "yaml"
	FormJSON Form = "json"
	FormOwn  Form = ""     // not Ansible's, but that of package fleet
	FormTOML Form = "toml" // recognized, but refused
)

var (
	topKey    = lazyregexp.New(`(?m)^["']?([^\s"'#\[\]{},:=-][^\s"':=\[]*)["']?:(?:[ \t\r].*)?$`)
	listBelow = lazyregexp.New(`(?m)^["']?hosts["']?:\s*(?:#.*)?\s*(?:\n\s*(?:#.*)?)*\n?\s*[-\[]`)
)

// FormOf returns the syntax of a file, judged by its name and, where that is not enough,
// by its contents.
func FormOf(name string, data []byte) Form {
	text := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n")
	switch ext := path.Ext(name); {
	case ext == ".toml":
		return FormTOML
	case ext == ".ini" || ext == ".cfg":
		return FormINI
	case bytes.HasPrefix(text, []byte("{")):
		return formOfJSON(text)
	case slices.Contains([]string{".yml", ".yaml", ".json"}, ext) || looksLikeYAML(text):
		return formOfYAML(text)
	}
	return FormINI
}

// ownKeys returns the top-level keys in files of package fleet.
func ownKeys() []string { return []string{"defaults", "hosts", "limits", "overrides"} }

// formOfJSON distinguishes an inventory of muster, in JSON or in YAML with braces, from
// one of Ansible.
func formOfJSON(text []byte) Form {
	var top map[string]json.RawMessage
	if json.Unmarshal(text, &top) != nil {
		if inner := bytes.TrimLeft(text[1:], " \t\r\n"); bytes.HasPrefix(inner, []byte(`"`)) {
			return FormJSON // with a mistake in it
		}
		return FormOwn
	}
	if _, all := top["all"]; all || top["_meta"] != nil {
		return FormJSON
	}
	for _, key := range ownKeys() {
		if v, there := top[key]; there && (key != "hosts" || bytes.HasPrefix(v, []byte("["))) {
			return FormOwn
		}
	}
	return FormJSON
}

// looksLikeYAML distinguishes YAML from INI where the file name leaves both possible.
func looksLikeYAML(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, " \t\r\n")
		switch {
		case len(line) == 0 || line[0] == '#' || line[0] == ';':
			continue
		case bytes.HasPrefix(line, []byte("---")) || bytes.HasPrefix(line, []byte("%YAML")):
			return true
		}
		return topKey().Match(line)
	}
	return false
}

// formOfYAML looks at the top-level keys. A key of muster's inventory is not the name of a
// group, unless the file has a group all.
func formOfYAML(text []byte) Form {
	form := FormOwn
	for _, m := range topKey().FindAllSubmatch(text, -1) {
		switch key := string(m[1]); {
		case key == allGroup:
			return FormYAML
		case key == "hosts" && !listBelow().Match(text):
			form = FormYAML
		case slices.Contains(ownKeys(), key):
			return FormOwn
		default:
			form = FormYAML
		}
	}
	return form
}

// Read reads an inventory. Its hosts keep the order of the files.
func Read(t Tree, o Options) fleet.Part {
	r := read(t)
	part := fleet.Part{Entries: r.entries(o)}
	part.Hops = r.hops
	part.Mistakes, part.Notes = sorted(t, r.mistakes), sorted(t, r.notes)
	part.Warnings = sorted(t, r.warnings)
	for _, f := range t.Files {
		part.Files = append(part.Files, f.Name)
	}
	for _, f := range t.Vars {
		part.Files = append(part.Files, f.Name)
	}
	return part
}

func read(t Tree) *reader {
	r := &reader{model: newModel(), said: map[fleet.Mistake]bool{},
		jumps: map[string]jump{}}
	for _, f := range t.Files {
		r.file = f.Name
		switch data := bytes.TrimPrefix(f.Data, []byte("\ufeff")); {
		case bytes.HasPrefix(data, []byte(vaultHead)):
			r.mistake(1, "the file is encrypted by ansible-vault: give it in plain text")
		case FormOf(f.Name, data) == FormJSON:
			r.readJSON(data)
		case FormOf(f.Name, data) == FormYAML:
			r.readYAML(data)
		case FormOf(f.Name, data) == FormINI:
			r.readINI(data)
		case FormOf(f.Name, data) == FormTOML:
			r.mistake(1, "TOML is not read: write it as YAML, with `ansible-inventory --list --yaml`")
		default:
			r.mistake(1, "the file is not in a form of Ansible: want INI, YAML or the JSON of --list")
		}
	}
	r.settle()
	r.readVars(t.Vars)
	return r
}

// sorted sorts mistakes by file and line.
func sorted(t Tree, list fleet.Mistakes) fleet.Mistakes {
	rank := map[string]int{}
	for _, f := range t.Files {
		rank[f.Name] = len(rank)
	}
	for _, f := range t.Vars {
		rank[f.Name] = len(rank)
	}
	slices.SortStableFunc(list, func(a, b fleet.Mistake) int {
		return cmp.Or(rank[a.File]-rank[b.File], a.Line-b.Line)
	})
	return list
}

// readVars assigns the variables in files to groups and hosts. The group web gets those of
// the file or folder web or, without that, of web.yml, web.yaml or web.json.
func (r *reader) readVars(files []VarsFile) {
	tops := map[bool]map[string][]VarsFile{false: {}, true: {}}
	for _, f := range files {
		top, _, _ := strings.Cut(f.Path, "/")
		tops[f.Hosts][top] = append(tops[f.Hosts][top], f)
	}
	give := func(name string, hosts bool, into settings) {
		for _, ext := range []string{"", ".yml", ".yaml", ".json"} {
			found := tops[hosts][name+ext]
			for _, f := range found {
				r.file = f.Name
				r.variables(bytes.TrimPrefix(f.Data, []byte("\ufeff")), into)
			}
			if len(found) > 0 {
				return
			}
		}
	}
	if len(tops[false]) > 0 {
		for _, g := range r.groups {
			give(g.name, false, g.files)
		}
	}
	if len(tops[true]) > 0 {
		for _, h := range r.order {
			give(h.name, true, h.files)
		}
	}
}
