package machine

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// escapes replaces \n, \t and the like, as echo and the format of printf do.
func escapes(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if s[i] >= '0' && s[i] <= '7' {
			end, most := i, 3
			if s[i] == '0' {
				most = 4
			}
			for end < len(s) && end < i+most && s[end] >= '0' && s[end] <= '7' {
				end++
			}
			n, _ := strconv.ParseUint(s[i:end], 8, 16) // four digits fit
			b.WriteByte(byte(n))
			i = end - 1
			continue
		}
		if at := strings.IndexByte(`abfnrtv\`, s[i]); at >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v\\"[at])
			continue
		}
		b.WriteString(s[i-1 : i+1])
	}
	return b.String()
}

// runPrintf knows %s, %b, %d, %i, %c, %x and %%; it uses its format again while
// arguments are left.
func runPrintf(c *call) Status {
	args := c.args
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return c.fail(2, "missing operand")
	}
	format, args := args[0], args[1:]
	for {
		text, rest, err := formatted(format, args)
		if err != nil {
			return c.fail(1, "%s", err)
		}
		if _, err := io.WriteString(c.out, text); err != nil {
			return Status{Code: 1}
		}
		if len(rest) == 0 || len(rest) == len(args) {
			return Status{}
		}
		args = rest
	}
}

func formatted(format string, args []string) (text string, rest []string, err error) {
	var b strings.Builder
	for {
		plain, directive, found := strings.Cut(format, "%")
		b.WriteString(escapes(plain))
		switch {
		case !found:
			return b.String(), args, nil
		case directive == "":
			return "", nil, fmt.Errorf("%%: missing conversion")
		}
		verb := directive[0]
		format = directive[1:]
		if verb == '%' {
			b.WriteByte('%')
			continue
		}
		arg := ""
		if len(args) > 0 {
			arg, args = args[0], args[1:]
		}
		word, err := converted(verb, arg)
		if err != nil {
			return "", nil, err
		}
		b.WriteString(word)
	}
}

func converted(verb byte, arg string) (string, error) {
	switch verb {
	case 's':
		return arg, nil
	case 'b':
		return escapes(arg), nil
	case 'c':
		return arg[:min(1, len(arg))], nil
	case 'd', 'i', 'x':
		n, err := strconv.ParseInt(cmp.Or(arg, "0"), 0, 64)
		if err != nil {
			return "", fmt.Errorf("%s: expected numeric value", arg)
		}
		if verb == 'x' {
			return strconv.FormatInt(n, 16), nil
		}
		return strconv.FormatInt(n, 10), nil
	}
	return "", fmt.Errorf("%%%c: invalid directive", verb)
}

// runTest is test and [: 0 true, 1 false, 2 not understood.
func runTest(c *call) int {
	args := c.args
	if c.name == "[" {
		if len(args) == 0 || args[len(args)-1] != "]" {
			return c.fail(2, "missing ]").Code
		}
		args = args[:len(args)-1]
	}
	wanted := true
	for len(args) > 1 && args[0] == "!" {
		args, wanted = args[1:], !wanted
	}
	holds, err := c.holds(args)
	if err != nil {
		return c.fail(2, "%s", err).Code
	}
	return btoi(holds != wanted)
}

func (c *call) holds(args []string) (bool, error) {
	switch len(args) {
	case 0:
		return false, nil
	case 1:
		return args[0] != "", nil
	case 2:
		return c.holdsFor(args[0], args[1])
	case 3:
		return compare(args[0], args[1], args[2])
	}
	return false, fmt.Errorf("too many arguments")
}

func (c *call) holdsFor(operator, operand string) (bool, error) {
	switch operator {
	case "-n":
		return operand != "", nil
	case "-z":
		return operand == "", nil
	case "-t":
		return false, nil // there is no terminal
	}
	n, ok := c.sh.machine.disk().stat(c.path(operand))
	switch operator {
	case "-e", "-r", "-w", "-O":
		return ok, nil
	case "-f":
		return ok && !n.dir, nil
	case "-d":
		return ok && n.dir, nil
	case "-s":
		return ok && (n.dir || len(n.data) > 0), nil
	case "-x":
		return ok && n.mode&0o111 != 0, nil
	}
	return false, fmt.Errorf("%s: unexpected operator", operator)
}

func compare(a, operator, b string) (bool, error) {
	switch operator {
	case "=":
		return a == b, nil
	case "!=":
		return a != b, nil
	}
	x, err := strconv.Atoi(a)
	if err != nil {
		return false, trouble("Illegal number: " + a)
	}
	y, err := strconv.Atoi(b)
	if err != nil {
		return false, trouble("Illegal number: " + b)
	}
	switch operator {
	case "-eq":
		return x == y, nil
	case "-ne":
		return x != y, nil
	case "-lt":
		return x < y, nil
	case "-le":
		return x <= y, nil
	case "-gt":
		return x > y, nil
	case "-ge":
		return x >= y, nil
	}
	return false, fmt.Errorf("%s: unexpected operator", operator)
}
