package cli

import (
	"fmt"
	"io"
)

// CheckOutput returns an error unless the format is table or json.
func CheckOutput(output string) error {
	if output != OutputTable && output != OutputJSON {
		return fmt.Errorf("--output %q: want table or json", output)
	}
	return nil
}

// PrintJSON writes a value as one indented JSON text.
func PrintJSON(out io.Writer, v any) error {
	text, err := Encode(v, "  ")
	if err == nil {
		_, err = io.WriteString(out, text)
	}
	return err
}
