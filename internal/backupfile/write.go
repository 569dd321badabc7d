package backupfile

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"filippo.io/age"
)

// Kind says what a part of a backup is. A package that puts parts into a backup chooses its own
// letters.
type Kind byte

// The kinds that each backup has.
const (
	Head Kind = 'H' // the first part: what the backup is, in JSON
	tail Kind = 'E' // the last part: the MAC
)

// Vouch returns a text that only a server can make of the sum of a backup.
type Vouch func(sum string) (string, error)

// Writer writes one backup.
type Writer struct {
	out   io.WriteCloser // encrypts
	pack  *gzip.Writer
	buf   *bufio.Writer
	sum   hash.Hash // of all parts
	vouch Vouch
	num   []byte
}

const (
	bufferSize = 1 << 20 // bytes
	// level favours speed: Redis has packed most of it already.
	level = gzip.BestSpeed
)

// NewWriter begins a backup that the recipients can read. Only Close makes it whole; w stays open.
func NewWriter(w io.Writer, to Recipients, vouch Vouch) (*Writer, error) {
	if len(to) == 0 {
		return nil, errors.New("nobody could read the backup: want a recipient")
	}
	out, err := age.Encrypt(w, to...)
	if err != nil {
		return nil, err
	}
	pack, err := gzip.NewWriterLevel(out, level)
	if err != nil {
		return nil, err
	}
	return &Writer{out: out, pack: pack, buf: bufio.NewWriterSize(pack, bufferSize),
		sum: sha256.New(), vouch: vouch}, nil
}

// Put adds a part, which has fields.
func (w *Writer) Put(kind Kind, fields ...[]byte) error {
	if err := w.bytes([]byte{byte(kind)}); err != nil {
		return err
	}
	if err := w.number(len(fields)); err != nil {
		return err
	}
	for _, f := range fields {
		if err := w.number(len(f)); err != nil {
			return err
		}
		if err := w.bytes(f); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) number(n int) error {
	w.num = binary.AppendUvarint(w.num[:0], uint64(n))
	return w.bytes(w.num)
}

func (w *Writer) bytes(b []byte) error {
	w.sum.Write(b) // never fails
	_, err := w.buf.Write(b)
	return err
}

// Close adds the end, without which nobody believes the backup.
func (w *Writer) Close() error {
	mac, err := w.vouch(hex.EncodeToString(w.sum.Sum(nil)))
	if err != nil {
		return err
	}
	if err := w.Put(tail, []byte(mac)); err != nil {
		return err
	}
	for _, end := range []func() error{w.buf.Flush, w.pack.Close, w.out.Close} {
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}
