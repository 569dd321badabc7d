package fleet

import (
	"iter"
	"reflect"
	"strings"
)

// hostField is a field of a host by its name in JSON.
type hostField struct {
	name  string
	index []int // of package reflect
}

// hostFieldList are the fields of a host, in their order. What writes, compares or
// overrides hosts goes by them, so that none is forgotten.
func hostFieldList() []hostField {
	var list []hostField
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Host]()) {
		if f.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		list = append(list, hostField{name, f.Index})
	}
	return list
}

// values are the fields of a host but name and labels, by name.
func values(h *Host, fields []hostField) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		v := reflect.ValueOf(h).Elem()
		for _, f := range fields {
			if f.name == "name" || f.name == "labels" {
				continue
			}
			if !yield(f.name, v.FieldByIndex(f.index).Interface()) {
				return
			}
		}
	}
}

// fileKey is the name of a field in files.
func fileKey(name string) string {
	if name == "host_cas" {
		return "host_ca"
	}
	return name
}
