package fleet

import (
	"iter"
	"reflect"
	"strings"
)

// hostField is a field of a host, with its name in JSON.
type hostField struct {
	name  string
	index []int // of package reflect
}

// hostFieldList returns the fields of a host, in their order. The code that writes, compares
// or overrides hosts loops over this list, so that it cannot forget a field.
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

// values yields the fields of a host by name, except its name and labels.
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

// fileKey returns the name of a field in inventory files.
func fileKey(name string) string {
	if name == "host_cas" {
		return "host_ca"
	}
	return name
}
