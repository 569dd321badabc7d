package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	endian "encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// A process of muster whose binary lies beside a file of this name has a clock that is off by the
// seconds in it. A later change of the file is a jump of the clock.
const clockFile = "clock"

// wrongClock makes the clock of this process wrong, if such a file is there. The Go runtime asks
// the kernel's vDSO for the time, so its first bytes there become a jump to code that asks the
// kernel and adds the seconds. On other machines than amd64 the clock stays right.
func wrongClock() error {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(os.Args[0]), clockFile), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	off, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	code, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return err
	}
	const (
		call  = "\xb8\xe4\x00\x00\x00\x0f\x05" // mov eax, SYS_clock_gettime; syscall
		other = "\x85\xff\x75\x10"             // test edi, edi; jne to the end: another clock
		load  = "\x48\xba"                     // mov rdx, the address of the seconds
		add   = "\x48\x8b\x12\x48\x01\x16\xc3" // mov rdx, [rdx]; add [rsi], rdx; ret
		to    = "\x48\xb8"                     // mov rax, the address of this code
		jump  = "\xff\xe0"                     // jmp rax
	)
	copy(code, join(call+other+load, uintptr(unsafe.Pointer(&off[0])), add))
	return patchClock([]byte(join(to, uintptr(unsafe.Pointer(&code[0])), jump)))
}

func join(before string, address uintptr, behind string) string {
	return string(endian.LittleEndian.AppendUint64([]byte(before), uint64(address))) + behind
}

// patchClock puts these bytes in front of the function of the vDSO that tells the time.
func patchClock(first []byte) error {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer maps.Close()
	var from, to int64
	for s := bufio.NewScanner(maps); s.Scan(); {
		if strings.HasSuffix(s.Text(), "[vdso]") {
			if _, err := fmt.Sscanf(s.Text(), "%x-%x", &from, &to); err != nil {
				return err
			}
		}
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	image := make([]byte, to-from)
	if _, err := mem.ReadAt(image, from); err != nil {
		return err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return err
	}
	list, err := file.DynamicSymbols()
	for _, s := range list {
		if s.Name == "__vdso_clock_gettime" && file.Machine == elf.EM_X86_64 {
			_, err = mem.WriteAt(first, from+int64(s.Value))
		}
	}
	return err
}

// setClock makes the clock of all processes of muster in a folder wrong by so many seconds.
func setClock(t testing.TB, dir string, seconds int64) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, clockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(join("", uintptr(seconds), "")), 0); err != nil {
		t.Fatal(err)
	}
}
