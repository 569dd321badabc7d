package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"muster/fleet/ansible"
	"muster/internal/files"
)

// stamp holds the properties of a file that are visible without reading it.
type stamp struct {
	inode   uint64
	size    int64
	mode    fs.FileMode
	changed time.Time // of content or inode, whichever is later
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	p := stamp{size: info.Size(), mode: info.Mode(), changed: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		p.inode = st.Ino
		if c := time.Unix(st.Ctim.Unix()); c.After(p.changed) {
			p.changed = c
		}
	}
	return p
}

// fileMax bounds one file, and filesMax those of all folders.
const (
	fileMax  = 64 << 20 // bytes
	filesMax = 20_000
)

// ignored are the names in a folder that are no inventory, as for Ansible.
var ignored = regexp.MustCompile(`^\.|^(group_vars|host_vars|vars_plugins)$|` +
	`(~|\.(orig|ini|cfg|retry|pyc|pyo|swp|bak|rpm|md|txt|rst))$`)

// dirOf returns the folder that may hold the variables of a source.
func dirOf(name string, info fs.FileInfo) string {
	if info.IsDir() {
		return name
	}
	return filepath.Dir(name)
}

// read reads a file, or all of a folder, into t.
func (g *gatherer) read(ctx context.Context, path string, info fs.FileInfo, t *tree) error {
	if !info.IsDir() {
		data, err := g.file(path)
		if err == nil && info.Mode()&0o111 != 0 && isProgram(data) {
			if info.Mode()&0o002 != 0 {
				return fmt.Errorf("inventory: %s is a program that everybody can write: chmod o-w", path)
			}
			data, err = g.ask(path, func() ([]byte, error) { return run(ctx, path) })
		}
		if err != nil {
			return err
		}
		t.files = append(t.files, ansible.File{Name: path, Data: data})
		return nil
	}
	names, err := g.folder(path)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if ignored.MatchString(name) {
			continue
		}
		inner := filepath.Join(path, name)
		info, err := os.Stat(inner)
		if err == nil {
			err = g.read(ctx, inner, info, t)
		} else {
			err = fmt.Errorf("inventory: %w", err)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil || len(t.files) > 0 {
		return err
	}
	return fmt.Errorf("inventory: %s has no inventory file in it: as for Ansible those do not end in "+
		".ini or .cfg, in a folder", path)
}

// file reads a file that is watched from now on.
func (g *gatherer) file(path string) ([]byte, error) {
	g.stamps[path] = stampOf(path) // before it is read: what changes meanwhile is seen
	if len(g.stamps) > filesMax {
		return nil, fmt.Errorf("inventory: more than %d files: list a smaller folder", filesMax)
	}
	data, err := files.Read(path, fileMax)
	if err != nil {
		return nil, fmt.Errorf("inventory: %w", err)
	}
	return data, nil
}

// folder lists a folder that is watched from now on; sorted.
func (g *gatherer) folder(path string) ([]string, error) {
	g.stamps[path] = stampOf(path)
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("inventory: %w", err)
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names, nil
}

// isProgram tells a program from a file that is executable by accident, as all
// files are on some file systems.
func isProgram(data []byte) bool {
	return bytes.HasPrefix(data, []byte("#!")) || bytes.HasPrefix(data, []byte("\x7fELF"))
}

// vars reads the folder group_vars or host_vars of a source, if it is there.
func (g *gatherer) vars(base, name string) ([]ansible.VarsFile, error) {
	root := filepath.Join(base, name)
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		g.stamps[root] = stampOf(root)
		return nil, nil
	}
	var list []ansible.VarsFile
	err := g.varsIn(root, "", func(path string, data []byte) {
		list = append(list, ansible.VarsFile{Hosts: name == "host_vars", Path: path,
			File: ansible.File{Name: filepath.Join(root, path), Data: data}})
	})
	return list, err
}

func (g *gatherer) varsIn(root, below string, add func(path string, data []byte)) error {
	names, err := g.folder(filepath.Join(root, below))
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		path := filepath.Join(below, name)
		info, err := os.Stat(filepath.Join(root, path))
		ext := filepath.Ext(name)
		known := ext == "" || ext == ".yml" || ext == ".yaml" || ext == ".json" || below == ""
		switch {
		case strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~"):
		case err != nil:
			errs = append(errs, fmt.Errorf("inventory: %w", err))
		case info.IsDir():
			if below == "" || ext == "" {
				errs = append(errs, g.varsIn(root, path, add))
			}
		case known:
			data, err := g.file(filepath.Join(root, path))
			if err != nil {
				errs = append(errs, err)
				continue
			}
			add(path, data)
		}
	}
	return errors.Join(errs...)
}
