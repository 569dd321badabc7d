package tidy

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// nameRules are about what has a name: that it is explained, where it stands and
// whether it may change.
var nameRules = []rule{
	{"package doc", checkPackageDocs},
	{"exported doc", checkExportedDocs},
	{"init", checkInit},
	{"globals", checkGlobals},
	{"sleep in tests", checkSleep},
	{"file name", checkFileNames},
	{"keys", checkKeys},
}

func checkPackageDocs(t *tree) []mistake {
	var found []mistake
	for dir, files := range t.packages() {
		if !slices.ContainsFunc(files, func(f *file) bool { return f.syntax.Doc != nil }) {
			found = append(found, files[0].atLine(0, dir, "no file of this package has a package doc, so a "+
				"reader must guess: add doc.go that says what it is, what it is not, and its floor"))
		}
	}
	return found
}

func checkExportedDocs(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		if f.isMain() || f.isTest() {
			continue
		}
		for _, id := range undocumented(f.syntax) {
			found = append(found, f.at(id.Pos(), id.Name, "exported without a comment: say what it is for and "+
				"what its errors mean, or make it unexported"))
		}
	}
	return found
}

func undocumented(syntax *ast.File) []*ast.Ident {
	var found []*ast.Ident
	for _, d := range syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && isReachable(d) && !isWellKnown(d) {
				found = append(found, d.Name)
			}
		case *ast.GenDecl:
			if d.Doc == nil || d.Tok == token.TYPE && d.Lparen.IsValid() {
				found = append(found, undocumentedSpecs(d)...)
			}
		}
	}
	return found
}

func undocumentedSpecs(d *ast.GenDecl) []*ast.Ident {
	var found []*ast.Ident
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Doc == nil && s.Comment == nil && s.Name.IsExported() {
				found = append(found, s.Name)
			}
		case *ast.ValueSpec:
			for _, id := range s.Names {
				if s.Doc == nil && s.Comment == nil && id.IsExported() {
					found = append(found, id)
				}
			}
		}
	}
	return found
}

// isReachable says that a function is no method of an unexported type.
func isReachable(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	for n := range ast.Preorder(d.Recv.List[0].Type) {
		if id, ok := n.(*ast.Ident); ok {
			return id.IsExported()
		}
	}
	return true
}

// isWellKnown says that a method does what its name says everywhere in Go.
func isWellKnown(d *ast.FuncDecl) bool {
	names := []string{"Error", "String", "Unwrap", "Len", "Less", "Swap"}
	return d.Recv != nil && slices.Contains(names, d.Name.Name)
}

func checkInit(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				found = append(found, f.at(fn.Pos(), "init", "it runs before main in an order that nobody sees, "+
					"also in every child that a master starts: make it a function and call it"))
			}
		}
	}
	return found
}

func checkGlobals(t *tree) []mistake {
	var found []mistake
	for _, files := range t.packages() {
		files = slices.DeleteFunc(files, (*file).helpsTests)
		global := map[string]bool{}
		for _, f := range files {
			for _, id := range packageVars(f.syntax) {
				global[id.Name] = true
			}
		}
		for _, f := range files {
			for _, id := range assigned(f.syntax) {
				if global[id.Name] && isPackageLevel(f.syntax, id) {
					found = append(found, f.at(id.Pos(), id.Name, "a variable of the package is changed: that is "+
						"state which no caller sees and which tests share; make it a field or an argument"))
				}
			}
		}
	}
	return found
}

func packageVars(syntax *ast.File) []*ast.Ident {
	var found []*ast.Ident
	for _, d := range syntax.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, s := range g.Specs {
				found = append(found, s.(*ast.ValueSpec).Names...)
			}
		}
	}
	return found
}

// assigned finds the variables that are written to, whole or in part.
func assigned(syntax *ast.File) []*ast.Ident {
	var found []*ast.Ident
	add := func(targets ...ast.Expr) {
		for _, e := range targets {
			if id := base(e); id != nil {
				found = append(found, id)
			}
		}
	}
	for n := range ast.Preorder(syntax) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				add(n.Lhs...)
			}
		case *ast.IncDecStmt:
			add(n.X)
		}
	}
	return found
}

// base finds the variable of an expression such as v.field[i].
func base(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return base(e.X)
	case *ast.IndexExpr:
		return base(e.X)
	case *ast.StarExpr:
		return base(e.X)
	case *ast.ParenExpr:
		return base(e.X)
	}
	return nil
}

// isPackageLevel says that a name means the package's, not one of a function.
func isPackageLevel(syntax *ast.File, id *ast.Ident) bool {
	if id.Obj == nil {
		return slices.Contains(syntax.Unresolved, id)
	}
	return syntax.Scope.Lookup(id.Name) == id.Obj
}

func checkSleep(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		if !f.isTest() || f.localName("testing/synctest") != "" {
			continue
		}
		for _, s := range f.uses("time", "Sleep") {
			found = append(found, f.at(s.Pos(), "time.Sleep", "a test that guesses at time is slow and fails on "+
				"a busy machine: wait for the event itself, or put the test into a synctest bubble"))
		}
	}
	return found
}

// systems are the words which Go takes for a system or a machine at the end of a
// file's name.
var systems = strings.Fields(`
	aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd plan9 solaris wasip1
	windows zos
	386 amd64 amd64p32 arm arm64 arm64be armbe loong64 mips mips64 mips64le mips64p32 mips64p32le mipsle ppc
	ppc64 ppc64le riscv riscv64 s390 s390x sparc sparc64 wasm`)

func checkFileNames(t *tree) []mistake {
	var found []mistake
	for _, f := range t.files {
		name, isGo := strings.CutSuffix(path.Base(f.path), ".go")
		parts := strings.Split(strings.TrimSuffix(name, "_test"), "_")
		last := parts[len(parts)-1]
		if isGo && len(parts) > 1 && slices.Contains(systems, last) {
			found = append(found, f.atLine(0, "", "Go takes _%s at the end of a name for a system and leaves "+
				"the file out on all others without a word, a test too: choose another name; if it is meant, say "+
				"it with //go:build", last))
		}
	}
	return found
}

// keyStart begins every key in Redis.
const keyStart = "muster:{"

func checkKeys(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		if f.helpsTests() || f.path == "jobs/queue/keys.go" {
			continue
		}
		for n := range ast.Preorder(f.syntax) {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, keyStart) {
				found = append(found, f.at(lit.Pos(), "", "a key of Redis is made here, but all are made in "+
					"jobs/queue/keys.go, where each stands with its type and its writers: add a function there"))
			}
		}
	}
	return found
}
