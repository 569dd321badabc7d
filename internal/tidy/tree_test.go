package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// module is the import path of the root of the tree.
const module = "muster"

// textMax bounds what is read of the tree: a larger file is no text that anyone
// writes by hand.
const textMax = 1 << 20 // bytes

// A tree is every text file of the project, with its Go parsed.
type tree struct {
	files []*file
}

// A file is one text file. Only Go of the main module that a person wrote has
// its syntax.
type file struct {
	path   string // from the root, with slashes
	text   string
	fset   *token.FileSet
	syntax *ast.File
}

// loadTree reads the tree below root.
func loadTree(root string) (*tree, error) {
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return nil, fmt.Errorf("there is no tree of the project here: %w", err)
	}
	texts := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "node_modules"}, d.Name()):
			return fs.SkipDir
		case d.Name() == ".git": // a file where the tree is a second one of its repository
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		text, err := readText(name)
		if err != nil || text == "" {
			return err
		}
		rel, err := filepath.Rel(root, name)
		texts[filepath.ToSlash(rel)] = text
		return err
	})
	if err != nil {
		return nil, err
	}
	return parseTree(texts)
}

// readText returns "" for a file that is not text.
func readText(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil || info.Size() > textMax {
		return "", err
	}
	b, err := os.ReadFile(name)
	if err != nil || bytes.IndexByte(b, 0) >= 0 {
		return "", err
	}
	return string(b), nil
}

// parseTree makes a tree of texts by path: the real one, or a sample.
func parseTree(texts map[string]string) (*tree, error) {
	t := &tree{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		f := &file{path: name, text: texts[name], fset: token.NewFileSet()}
		if f.isHouseGo() {
			syntax, err := parser.ParseFile(f.fset, name, f.text, parser.ParseComments)
			if err != nil {
				return nil, fmt.Errorf("cannot read the tree: %w", err)
			}
			if !ast.IsGenerated(syntax) {
				f.syntax = syntax
			}
		}
		t.files = append(t.files, f)
	}
	return t, nil
}

// goFiles are the files that the rules on Go look at.
func (t *tree) goFiles() []*file {
	return slices.DeleteFunc(slices.Clone(t.files), func(f *file) bool { return f.syntax == nil })
}

// packages goes through the folders with Go in them, by their path from the root.
func (t *tree) packages() iter.Seq2[string, []*file] {
	found := map[string][]*file{}
	for _, f := range t.goFiles() {
		found[f.dir()] = append(found[f.dir()], f)
	}
	return func(yield func(string, []*file) bool) {
		for _, dir := range slices.Sorted(maps.Keys(found)) {
			if !yield(dir, found[dir]) {
				return
			}
		}
	}
}

func (f *file) isHouseGo() bool {
	return path.Ext(f.path) == ".go" && !strings.HasSuffix(f.path, "_templ.go") &&
		!strings.HasPrefix(f.path, "tools/") && !strings.HasPrefix(f.path, "bench/") &&
		!strings.Contains("/"+f.path, "/testdata/")
}

func (f *file) dir() string  { return path.Dir(f.path) }
func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }
func (f *file) isMain() bool { return f.syntax.Name.Name == "main" }

// helpsTests says that a file is compiled for tests only.
func (f *file) helpsTests() bool { return f.isTest() || isTestPackage(f.dir()) }

// testkit is the folder of the packages that help tests, such as testkit/redistest.
const testkit = "testkit"

// isTestPackage reports whether a package exists only to help tests.
func isTestPackage(dir string) bool { return within(dir, testkit) }

// mayUseTestkit reports whether a file may import a package of testkit: the files of
// tests and of testkit itself may, and so may the demo, which plays a fleet on purpose.
func (f *file) mayUseTestkit() bool {
	return f.helpsTests() || path.Base(f.dir()) == "demo" || strings.HasPrefix(path.Base(f.path), "demo")
}

func (f *file) line(p token.Pos) int { return f.fset.Position(p).Line }

// lines counts the lines from one position to another, both included.
func (f *file) lines(n ast.Node) int { return f.line(n.End()) - f.line(n.Pos()) + 1 }

// at makes a mistake at a place in Go. The text is a format if there are values.
func (f *file) at(p token.Pos, subject, text string, values ...any) mistake {
	return f.atLine(f.line(p), subject, text, values...)
}

func (f *file) atLine(line int, subject, text string, values ...any) mistake {
	return mistake{path: f.path, line: line, subject: subject, text: fmt.Sprintf(text, values...)}
}

func importPath(s *ast.ImportSpec) string {
	p, _ := strconv.Unquote(s.Path.Value) // the parser has checked it
	return p
}

// localName is the name under which a file knows a package, or "" if it does not
// import it. It trusts that a package is named after the end of its path.
func (f *file) localName(pkg string) string {
	for _, s := range f.syntax.Imports {
		if importPath(s) != pkg {
			continue
		}
		if s.Name != nil {
			return s.Name.Name
		}
		return path.Base(pkg)
	}
	return ""
}

// uses finds each mention of pkg.name for one of the names.
func (f *file) uses(pkg string, names ...string) []*ast.SelectorExpr {
	local := f.localName(pkg)
	if local == "" {
		return nil
	}
	var found []*ast.SelectorExpr
	for n := range ast.Preorder(f.syntax) {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains(names, s.Sel.Name) {
			continue
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == local && x.Obj == nil {
			found = append(found, s)
		}
	}
	return found
}
