package anchor

import (
	"bytes"
	"context"
	"errors"
	"os"
)

// fileSink appends lines to a file and syncs it.
type fileSink struct{ path string }

func (f fileSink) send(_ context.Context, b Batch) error {
	file, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(appendLines(file, b.Lines), file.Close())
}

func appendLines(file *os.File, lines [][]byte) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if info.Mode().IsRegular() && info.Size() > 0 {
		// A line that a crash has cut must not spoil the next one.
		last := make([]byte, 1)
		if _, err := file.ReadAt(last, info.Size()-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			text.WriteByte('\n')
		}
	}
	for _, line := range lines {
		text.Write(line)
		text.WriteByte('\n')
	}
	if _, err := file.Write(text.Bytes()); err != nil {
		return err
	}
	return file.Sync()
}
