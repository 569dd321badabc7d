package tidy

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

const (
	methodsMax   = 40   // of a type
	typeLinesMax = 1000 // of a type with its methods
	typeFilesMax = 6    // over which a type is spread
	allFieldsMax = 20   // of a struct, through embedding
	userMax      = 6    // methods of an interface, through embedding
)

// A typ is a type of the product with its methods.
type typ struct {
	name    string // with its package, as "jobs/queue.Queue"
	file    *file  // with the declaration
	spec    *ast.TypeSpec
	methods int
	lines   int
	files   map[string]bool
}

// types are all types of the product, by name.
func (t *tree) types() map[string]*typ {
	found := map[string]*typ{}
	for _, f := range t.goFiles() {
		for _, d := range f.syntax.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE || f.helpsTests() {
				continue
			}
			for _, s := range decl.Specs {
				spec := s.(*ast.TypeSpec)
				name := f.dir() + "." + spec.Name.Name
				found[name] = &typ{name: name, file: f, spec: spec, lines: f.lines(spec),
					files: map[string]bool{f.path: true}}
			}
		}
	}
	for _, f := range t.goFiles() {
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || f.helpsTests() {
				continue
			}
			if of := found[f.dir()+"."+receiver(fn)]; of != nil {
				of.methods++
				of.lines += f.lines(fn)
				of.files[f.path] = true
			}
		}
	}
	return found
}

// receiver is the name of the type that a method belongs to.
func receiver(fn *ast.FuncDecl) string {
	name, _ := embedded(fn.Recv.List[0].Type)
	return name
}

// embedded is the name of a type, behind pointers and type arguments, and its package as the
// file names it; empty: its own.
func embedded(e ast.Expr) (name, pkg string) {
	switch e := e.(type) {
	case *ast.StarExpr:
		return embedded(e.X)
	case *ast.IndexExpr:
		return embedded(e.X)
	case *ast.IndexListExpr:
		return embedded(e.X)
	case *ast.Ident:
		return e.Name, ""
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return e.Sel.Name, x.Name
		}
	}
	return "", ""
}

// eachType makes a measure of each type.
func eachType(t *tree, m measure, value func(*typ) int) []measure {
	var found []measure
	types := t.types()
	for _, name := range slices.Sorted(maps.Keys(types)) {
		m.subject, m.file = name, types[name].file
		m.line = m.file.line(types[name].spec.Pos())
		m.value = value(types[name])
		found = append(found, m)
	}
	return found
}

func typeMethods(t *tree) []measure {
	return eachType(t, measure{limit: methodsMax, unit: "methods",
		advice: "nobody can say what a method of such a type may touch; a part of it wants to be a type"},
		func(of *typ) int { return of.methods })
}

func typeLines(t *tree) []measure {
	return eachType(t, measure{limit: typeLinesMax, unit: "lines with its methods",
		advice: "it is read as one thing; a part of it wants to be a type"},
		func(of *typ) int { return of.lines })
}

func typeFiles(t *tree) []measure {
	return eachType(t, measure{limit: typeFilesMax, unit: "files",
		advice: "they are chapters of one type; a file wants a type of its own"},
		func(of *typ) int { return len(of.files) })
}

func allFields(t *tree) []measure {
	types := t.types()
	return eachType(t, measure{limit: allFieldsMax, unit: "fields with those of what it embeds",
		advice: "each method may set each of them; embed less, and pass what is needed"},
		func(of *typ) int { return flat(types, of, map[string]bool{}) })
}

func interfaceMethods(t *tree) []measure {
	types := t.types()
	return eachType(t, measure{limit: userMax, unit: "methods with those of what it embeds",
		advice: "the user of a thing declares the one to four methods that it calls"},
		func(of *typ) int {
			if _, ok := of.spec.Type.(*ast.InterfaceType); !ok {
				return 0
			}
			return flat(types, of, map[string]bool{})
		})
}

// flat counts the fields of a struct, or the methods of an interface, through embedding. What
// is embedded from elsewhere counts as one.
func flat(types map[string]*typ, of *typ, seen map[string]bool) int {
	if seen[of.name] {
		return 0
	}
	seen[of.name] = true
	list := membersOf(of.spec.Type)
	n := 0
	for _, member := range list {
		if len(member.Names) > 0 {
			n += len(member.Names)
			continue
		}
		name, pkg := embedded(member.Type)
		dir := of.file.dir()
		if pkg != "" {
			dir = of.file.imports(pkg)
		}
		if inner := types[dir+"."+name]; inner != nil && len(membersOf(inner.spec.Type)) > 0 {
			n += flat(types, inner, seen)
			continue
		}
		n++
	}
	return n
}

func membersOf(e ast.Expr) []*ast.Field {
	switch e := e.(type) {
	case *ast.StructType:
		return e.Fields.List
	case *ast.InterfaceType:
		return e.Methods.List
	}
	return nil
}

// imports is the folder of a package of the tree that a file knows under a name.
func (f *file) imports(name string) string {
	for _, s := range f.syntax.Imports {
		if dir, ok := strings.CutPrefix(importPath(s), module+"/"); ok && f.localName(importPath(s)) == name {
			return dir
		}
	}
	return ""
}
