package machine

import (
	"io"
	"io/fs"
	"os"
	"path"
	"time"
)

// This file adapts a disk to the library that interprets scripts.

// open opens a file. Reading goes through a pipe of the system, because the library passes nothing
// else on to a tool.
func (d *disk) open(name string, flags int) (io.ReadWriteCloser, error) {
	wrong := func(err error) error { return &fs.PathError{Op: "open", Path: name, Err: err} }
	if flags&(os.O_WRONLY|os.O_RDWR) != 0 {
		if name == "/dev/null" {
			return onDisk{}, nil
		}
		n, err := d.create(name, flags&os.O_APPEND != 0, 0o644)
		if err != nil {
			return nil, wrong(err)
		}
		return onDisk{disk: d, node: n}, nil
	}
	var data []byte
	if name != "/dev/null" {
		var err error
		if data, err = d.read(name); err != nil {
			return nil, wrong(err)
		}
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, wrong(err)
	}
	if len(data) <= chunkMax { // fits into any pipe
		_, err = to.Write(data)
		to.Close()
		return from, err
	}
	go func() {
		_, _ = to.Write(data) // it fails if nobody reads to the end
		to.Close()
	}()
	return from, nil
}

// onDisk is a file that is open for writing; without a disk it is /dev/null.
type onDisk struct {
	disk *disk
	node *node
}

func (onDisk) Read([]byte) (int, error) { return 0, io.EOF }
func (onDisk) Close() error             { return nil }

func (o onDisk) Write(b []byte) (int, error) {
	if o.disk == nil {
		return len(b), nil
	}
	if err := o.disk.append(o.node, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// info describes a file.
func (d *disk) info(name string) (fs.FileInfo, error) {
	n, ok := d.stat(name)
	if !ok {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return fileInfo{path.Base(name), n}, nil
}

// entries lists a directory.
func (d *disk) entries(name string) []fs.DirEntry {
	var all []fs.DirEntry
	for _, base := range d.list(name) {
		if info, err := d.info(path.Join(name, base)); err == nil {
			all = append(all, fs.FileInfoToDirEntry(info))
		}
	}
	return all
}

type fileInfo struct {
	name string
	node node
}

func (i fileInfo) Name() string     { return i.name }
func (i fileInfo) Size() int64      { return int64(len(i.node.data)) }
func (fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool      { return i.node.dir }
func (fileInfo) Sys() any           { return nil }

func (i fileInfo) Mode() fs.FileMode {
	mode := fs.FileMode(i.node.mode)
	if i.node.dir {
		mode |= fs.ModeDir
	}
	return mode
}
