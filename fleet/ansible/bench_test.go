package ansible_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/ansible"
)

// BenchmarkLoad20000 reads inventories of 20,000 hosts: listed with variables, as a range,
// and as the output of --list.
func BenchmarkLoad20000(b *testing.B) {
	var lines, list strings.Builder
	list.WriteString(`{"_meta": {"hostvars": {`)
	var names []string
	for i := range 20_000 {
		if i%100 == 0 {
			fmt.Fprintf(&lines, "[site%d]\n", i/100)
		}
		fmt.Fprintf(&lines, "fw%05d ansible_host=127.77.%d.%d ansible_port=2222 muster_customer=c%d\n", i, i/250,
			1+i%250, i%7)
		fmt.Fprintf(&list, "\"fw%05d\": {\"ansible_host\": \"127.77.%d.%d\", \"ansible_port\": 2222},\n", i, i/250,
			1+i%250)
		names = append(names, fmt.Sprintf("\"fw%05d\"", i))
	}
	fmt.Fprintf(&list, `"x": {}}}, "fw": {"hosts": [%s]}}`, strings.Join(names, ","))
	for name, text := range map[string]string{"lines.ini": lines.String(), "list.json": list.String(),
		"range.ini": "[fw]\nfw[00000:19999] ansible_port=2222\n[fw:vars]\nansible_user=x\n"} {
		b.Run(name, func(b *testing.B) {
			begun := cpuTime(b)
			for b.Loop() {
				inv, err := fleet.Join(ansible.Read(ansible.Tree{Files: []ansible.File{{Name: name,
					Data: []byte(text)}}}, ansible.Options{}))
				if err != nil || inv.Len() != 20_000 {
					b.Fatal(err)
				}
			}
			b.ReportMetric((cpuTime(b)-begun).Seconds()*1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// cpuTime returns the CPU time of the process so far.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
