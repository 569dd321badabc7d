package tidy

import (
	"go/ast"
	"go/token"
	"strings"
	"unicode/utf8"
)

// sizeRules bound the tail: a reader has to hold a file, a function, a struct in
// his head at once.
var sizeRules = []rule{
	{"file length", checkFiles},
	{"function length", checkFunctions},
	{"parameters", checkParameters},
	{"fields", checkFields},
	{"nesting", checkNesting},
	{"line length", checkLines},
}

const (
	fileSoft    = 400 // lines
	fileHard    = 600 // lines
	funcSoft    = 60
	funcHard    = 70
	paramsMax   = 4   // after the context
	fieldsMax   = 15  // of a struct
	configMax   = 20  // of a struct named …Config
	nestingSoft = 4   // tabs
	lineMax     = 100 // columns, a tab counted as one, as any tool counts
	testLineMax = 120
)

func checkFiles(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		n := countLines(f.text)
		if n <= fileSoft {
			continue
		}
		m := f.atLine(0, "", "%d lines, want %d, at most %d: two files with a name each are found and read "+
			"faster than one", n, fileSoft, fileHard)
		m.soft = n <= fileHard
		found = append(found, m)
	}
	return found
}

func countLines(text string) int { return strings.Count(text, "\n") }

func checkFunctions(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := f.lengthOf(fn)
			if n <= funcSoft {
				continue
			}
			m := f.at(fn.Pos(), fn.Name.Name, "%d lines, want %d, at most %d: a function fits a screen; keep "+
				"the branching here and give the straight parts a name", n, funcSoft, funcHard)
			m.soft = n <= funcHard
			found = append(found, m)
		}
	}
	return found
}

// lengthOf counts the lines from func to its closing brace. The tables of a test
// are data and do not count.
func (f *file) lengthOf(fn *ast.FuncDecl) int {
	n := f.lines(fn)
	if !f.helpsTests() {
		return n
	}
	ast.Inspect(fn, func(node ast.Node) bool {
		table, ok := node.(*ast.CompositeLit)
		if ok {
			n -= f.lines(table) - 1
		}
		return !ok
	})
	return n
}

func checkParameters(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		for n := range ast.Preorder(f.syntax) {
			fn, ok := n.(*ast.FuncType)
			if !ok {
				continue
			}
			if n := countParameters(fn); n > paramsMax {
				found = append(found, f.at(fn.Pos(), "", "%d parameters, at most %d after the context: at the "+
					"call nobody sees which is which; make a struct of what belongs together", n, paramsMax))
			}
		}
	}
	return found
}

// countParameters leaves out the context and the test, which go through all.
func countParameters(fn *ast.FuncType) int {
	n := 0
	for _, p := range fn.Params.List {
		if !isThrough(p.Type) {
			n += max(1, len(p.Names))
		}
	}
	return n
}

func isThrough(t ast.Expr) bool {
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	s, ok := t.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && (x.Name == "context" || x.Name == "testing" || x.Name == "rapid")
}

func checkFields(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		bound := map[*ast.StructType]int{}
		for n := range ast.Preorder(f.syntax) {
			if spec, ok := n.(*ast.TypeSpec); ok && strings.HasSuffix(spec.Name.Name, "Config") {
				if s, ok := spec.Type.(*ast.StructType); ok {
					bound[s] = configMax
				}
			}
			s, ok := n.(*ast.StructType)
			if !ok {
				continue
			}
			want := max(fieldsMax, bound[s])
			if n := s.Fields.NumFields(); n > want {
				found = append(found, f.at(s.Pos(), "", "%d fields, at most %d: no one can say which of them "+
					"go together; find the struct inside", n, want))
			}
		}
	}
	return found
}

func checkNesting(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || f.helpsTests() {
				continue
			}
			if p, n := f.deepest(fn); n > nestingSoft {
				m := f.at(p, fn.Name.Name, "a statement %d tabs deep, want %d: return early, or give the inner "+
					"part a name", n, nestingSoft)
				m.soft = true
				found = append(found, m)
			}
		}
	}
	return found
}

// deepest finds the statement that stands furthest to the right, in tabs.
func (f *file) deepest(fn *ast.FuncDecl) (token.Pos, int) {
	var at token.Pos
	deepest := 0
	for n := range ast.Preorder(fn.Body) {
		if _, ok := n.(ast.Stmt); !ok {
			continue
		}
		p := f.fset.Position(n.Pos())
		start := p.Offset - (p.Column - 1)
		line := f.text[start:p.Offset]
		if tabs := len(line) - len(strings.TrimLeft(line, "\t")); tabs > deepest {
			at, deepest = n.Pos(), tabs
		}
	}
	return at, deepest
}

func checkLines(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		want := lineMax
		if f.helpsTests() {
			want = testLineMax
		}
		free := f.unbreakable()
		for i, line := range strings.Split(f.text, "\n") {
			n := utf8.RuneCountInString(line)
			if n > want && !free[i+1] && !isOneWord(line) {
				found = append(found, f.atLine(i+1, "", "%d columns, at most %d: two windows shall fit side "+
					"by side; break the line", n, want))
			}
		}
	}
	return found
}

// unbreakable has the lines that a person cannot break: tags of struct fields and
// what stands inside of a text of several lines.
func (f *file) unbreakable() map[int]bool {
	free := map[int]bool{}
	for n := range ast.Preorder(f.syntax) {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil {
				free[f.line(n.Tag.Pos())] = true
			}
		case *ast.BasicLit:
			first, last := f.line(n.Pos()), f.line(n.End())
			for i := first; n.Kind == token.STRING && first < last && i <= last; i++ {
				free[i] = true
			}
		}
	}
	return free
}

// isOneWord says that a line holds one long word, such as an address or a
// directive of the compiler.
func isOneWord(line string) bool {
	words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "//"))
	return len(words) <= 1 || strings.HasPrefix(strings.TrimSpace(line), "//go:")
}
