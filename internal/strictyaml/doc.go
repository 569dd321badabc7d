// Package strictyaml reads the YAML of files of settings: mappings with known keys, and texts,
// lists, times and words as values. It collects all mistakes of a file, each with its line, and
// refuses aliases, anchors and tags, because people must understand each line by itself.
//
// Floor 2: may import fleet, scripts and internal/wording.
package strictyaml
