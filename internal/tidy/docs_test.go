package tidy

import (
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"
)

// docRules hold what pages name against the tree: they are read long after whoever
// renamed a thing has forgotten them.
var docRules = []rule{
	{"tests in docs", checkDocTests},
	{"links in docs", checkDocLinks},
	{"paths in docs", checkDocPaths},
	{"targets in docs", checkDocTargets},
	{"keys in docs", checkDocKeys},
}

var (
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
	testName  = regexp.MustCompile(`(-run )?\b((?:Test|Fuzz|Benchmark)[A-Z]\w*)(\*)?`)
	docLink   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	docPath   = regexp.MustCompile("`([\\w.-]+(?:/[\\w.-]+)+\\.[a-z]+)`")
	heading   = regexp.MustCompile(`^#{1,6} +(.*)$`)
	noAnchor  = regexp.MustCompile(`[^\pL\pN_ -]`)
	makeCall  = regexp.MustCompile("(?:^ *|`)make ([a-z]+)")
	docKey    = regexp.MustCompile("`([a-z_]+)((?:\\.[a-z_]+)+)[`:]")
	yamlKey   = regexp.MustCompile(`^((?:  )*)(?:# )?([a-z_]+):(?: |$)`)
	makeEntry = regexp.MustCompile(`(?m)^([a-z]+):`)
)

// pages goes through the lines of all pages.
func (t *tree) pages() iter.Seq2[*file, textLine] {
	return func(yield func(*file, textLine) bool) {
		for _, f := range t.files {
			if path.Ext(f.path) != ".md" {
				continue
			}
			for i, text := range strings.Split(f.text, "\n") {
				if !yield(f, textLine{i + 1, text}) {
					return
				}
			}
		}
	}
}

func (t *tree) text(name string) string {
	i := slices.IndexFunc(t.files, func(f *file) bool { return f.path == name })
	if i < 0 {
		return ""
	}
	return t.files[i].text
}

// has reports whether there is a file or a folder of this path.
func (t *tree) has(name string) bool {
	return name == "." || slices.ContainsFunc(t.files, func(f *file) bool {
		return f.path == name || strings.HasPrefix(f.path, name+"/")
	})
}

func checkDocTests(t *tree) []mistake {
	var tests []string
	for _, f := range t.files {
		if strings.HasSuffix(f.path, "_test.go") {
			for _, m := range testFunc.FindAllStringSubmatch(f.text, -1) {
				tests = append(tests, m[1])
			}
		}
	}
	var found []mistake
	for f, l := range t.pages() {
		for _, m := range testName.FindAllStringSubmatch(l.text, -1) {
			some := m[1] != "" || m[3] != "" // a pattern: one that begins so is enough
			if !slices.ContainsFunc(tests, func(name string) bool {
				return name == m[2] || some && strings.HasPrefix(name, m[2])
			}) {
				found = append(found, f.atLine(l.line, m[2], "no test has this name, so nobody can see what the "+
					"page says: name the one that holds it now"))
			}
		}
	}
	return found
}

// anchors are the places within a page that a link can name.
func (t *tree) anchors(name string) []string {
	var found []string
	for line := range strings.Lines(t.text(name)) {
		if m := heading.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			found = append(found, strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
		}
	}
	return found
}

func checkDocLinks(t *tree) []mistake {
	var found []mistake
	for f, l := range t.pages() {
		for _, m := range docLink.FindAllStringSubmatch(l.text, -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			target := path.Join(f.dir(), to)
			if to == "" {
				target = f.path
			}
			switch {
			case strings.Contains(m[1], "://"):
			case !t.has(target):
				found = append(found, f.atLine(l.line, m[1], "there is no such file or folder, so the link leads "+
					"nowhere: say where it is now"))
			case anchor != "" && !slices.Contains(t.anchors(target), anchor):
				found = append(found, f.atLine(l.line, m[1], "%s has no heading of this anchor, so the link leads "+
					"to its top: there are %s", target, strings.Join(t.anchors(target), ", ")))
			}
		}
	}
	return found
}

// checkDocPaths looks at paths in code that begin in a folder of the tree.
func checkDocPaths(t *tree) []mistake {
	var found []mistake
	for f, l := range t.pages() {
		for _, m := range docPath.FindAllStringSubmatch(l.text, -1) {
			top, _, _ := strings.Cut(m[1], "/")
			if t.has(top) && !t.has(m[1]) && !t.has(path.Join(f.dir(), m[1])) {
				found = append(found, f.atLine(l.line, m[1], "there is no such file, so a reader looks for it in "+
					"vain: say where it is now"))
			}
		}
	}
	return found
}

func checkDocTargets(t *tree) []mistake {
	var found []mistake
	for f, l := range t.pages() {
		for _, m := range makeCall.FindAllStringSubmatch(l.text, -1) {
			known := makeEntry.FindAllString(t.text("Makefile")+"\n"+t.text(path.Join(f.dir(), "Makefile")), -1)
			if !slices.Contains(known, m[1]+":") {
				found = append(found, f.atLine(l.line, "make "+m[1], "the Makefile has no such target, so the "+
					"command fails for whoever tries it: name one that it has"))
			}
		}
	}
	return found
}

// settingKeys are the keys of etc/muster.yaml, those that stand there as a comment, too.
func settingKeys(text string) []string {
	var found, above []string
	for line := range strings.Lines(text) {
		if m := yamlKey.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			above = append(above[:min(len(above), len(m[1])/2)], m[2])
			found = append(found, strings.Join(above, "."))
		}
	}
	return found
}

// checkDocKeys looks at words such as overload.after that begin with a key that has keys.
func checkDocKeys(t *tree) []mistake {
	keys := settingKeys(t.text("etc/muster.yaml"))
	var found []mistake
	for f, l := range t.pages() {
		for _, m := range docKey.FindAllStringSubmatch(l.text, -1) {
			has := slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, m[1]+".") })
			if has && !slices.Contains(keys, m[1]+m[2]) {
				found = append(found, f.atLine(l.line, m[1]+m[2], "etc/muster.yaml has no such key, so a server "+
					"that finds it in its configuration does not start: name one that it has"))
			}
		}
	}
	return found
}
