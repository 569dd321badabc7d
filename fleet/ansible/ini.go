package ansible

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/lazyregexp"
)

var (
	sectionForm = lazyregexp.New(`^\[([^:\]\s]+)(?::(\w+))?\]\s*(?:#.*)?$`)
	groupForm   = lazyregexp.New(`^([^:\]\s]+)\s*(?:#.*)?$`)
	// firstWordForm matches the first word of a line with hosts, even if it is misspelt.
	firstWordForm = lazyregexp.New(`^\w[\w.-]*(\[[^\]]*\]?[\w.-]*)*(:\d*)?$`)
)

// iniReader reads one file in INI form.
type iniReader struct {
	*reader
	line     int
	declared map[string]bool // groups that have their own section
	wanted   []wantedGroup   // groups that need one before the file ends
}

type wantedGroup struct {
	name string
	line int
	text string // the mistake if the section is missing
}

// readINI reads a file in INI form.
func (r *reader) readINI(data []byte) {
	ini := &iniReader{reader: r, declared: map[string]bool{}}
	for name := range r.groups {
		ini.declared[name] = true
	}
	if !utf8.Valid(data) {
		valid, _ := cutInvalid(data)
		r.mistake(1+bytes.Count(valid, []byte("\n")), "the line is not UTF-8")
		return
	}
	if line := foreignLine(data); line > 0 {
		r.mistake(line, "this is no inventory: it has no [group], and does not begin with a host")
		return
	}
	var in *group = r.group(restGroup)
	kind := "hosts"
	for line := range strings.Lines(string(data)) {
		ini.line++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == ';' || line[0] == '#' {
			continue
		}
		if m := sectionForm().FindStringSubmatch(line); m != nil {
			in, kind = ini.section(m[1], m[2])
			continue
		}
		switch {
		case line[0] == '[' && line[len(line)-1] == ']':
			r.mistake(ini.line, "section %s: want [group], [group:vars] or [group:children], "+
				"without blanks", short(line))
			kind = ""
		case kind == "hosts":
			ini.hosts(line, in)
		case kind == "vars":
			ini.variable(line, in)
		case kind == "children":
			ini.child(line, in)
		}
	}
	for _, w := range ini.wanted {
		if !ini.declared[w.name] {
			r.mistake(w.line, "%s", w.text)
		}
	}
}

// foreignLine returns the number of the first line if the file cannot be an inventory, because
// it has no section and does not begin with a host. Otherwise it returns 0. Such a file may
// hold passwords, so no message quotes it.
func foreignLine(data []byte) (first int) {
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == ';' || line[0] == '#':
		case line[0] == '[':
			return 0
		case first == 0:
			if firstWordForm().MatchString(strings.Fields(line)[0]) {
				return 0
			}
			first = number
		}
	}
	return first
}

// cutInvalid splits data before the first byte that is not UTF-8.
func cutInvalid(data []byte) (valid, rest []byte) {
	n := 0
	for n < len(data) {
		r, size := utf8.DecodeRune(data[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return data[:n], data[n:]
}

// section starts a section. It returns no kind for an unknown one, so that readINI skips it.
func (r *iniReader) section(name, kind string) (*group, string) {
	switch kind {
	case "", "hosts":
		kind = "hosts"
		r.declared[name] = true
	case "children":
		r.declared[name] = true
	case "vars":
		r.wanted = append(r.wanted, wantedGroup{name, r.line, "[" + name + ":vars] has no group: " +
			"there is neither [" + name + "] nor [" + name + ":children]"})
	default:
		r.mistake(r.line, "section %s: want [group], [group:vars] or [group:children]",
			short(name+":"+kind))
		return nil, ""
	}
	return r.group(name), kind
}

// hosts reads a line such as: fw[1:3]:2222 ansible_user=admin role='a b' # words
func (r *iniReader) hosts(line string, g *group) {
	words, err := splitWords(line)
	if err != nil {
		r.mistake(r.line, "the line %v", err)
		return
	}
	if len(words) == 0 {
		return
	}
	names := r.addHosts(words[0], g, &yaml.Node{Line: r.line})
	for _, w := range words[1:] {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			r.mistake(r.line, "a word behind host %q has no =: want key=value", fleet.Word(words[0]))
			continue
		}
		r.setAll(names, key, pythonValue(value, r.line))
	}
}

func (r *iniReader) variable(line string, g *group) {
	key, value, ok := strings.Cut(line, "=")
	if !ok {
		r.mistake(r.line, "%q: want key=value", fleet.Word(line))
		return
	}
	r.setAll([]string{g.name}, strings.TrimSpace(key), pythonValue(strings.TrimSpace(value), r.line))
}

func (r *iniReader) child(line string, parent *group) {
	m := groupForm().FindStringSubmatch(line)
	if m == nil {
		r.mistake(r.line, "%s: want the name of a group", short(line))
		return
	}
	r.wanted = append(r.wanted, wantedGroup{m[1], r.line, "group " + short(m[1]) +
		" is a child here and has no section of its own: want [" + m[1] + "]"})
	if err := r.addChild(parent, r.group(m[1])); err != nil {
		r.mistake(r.line, "%v", err)
	}
}
