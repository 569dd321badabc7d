package ansible

import (
	"errors"
	"strings"
)

// splitWords cuts a line into words as Python's shlex does with comments on:
// quotes hold words together and are taken away, a backslash keeps the next byte
// as it is, and '#' ends the line, also in the middle of a word.
func splitWords(line string) ([]string, error) {
	var words []string
	var word []byte
	in := false      // within a word, which may be empty: ""
	quote := byte(0) // the quote that is open
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'':
			i++
			if i == len(line) {
				return nil, errors.New("ends in a backslash")
			}
			if quote != 0 && line[i] != '\\' && line[i] != quote {
				word = append(word, '\\')
			}
			word, in = append(word, line[i]), true
		case quote != 0:
			word = append(word, c)
		case c == '"' || c == '\'':
			quote, in = c, true
		case c == '#':
			i = len(line)
		case strings.IndexByte(" \t\r\n", c) >= 0:
			if in {
				words, word, in = append(words, string(word)), nil, false
			}
		default:
			word, in = append(word, c), true
		}
	}
	if quote != 0 {
		return nil, errors.New("has a quote that is not closed")
	}
	if in {
		words = append(words, string(word))
	}
	return words, nil
}
