package status_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"medusa/restore/status"
)

// How a start went. MEDUSA_STATUS, or restore --status, names the file.
func ExampleRead() {
	dir, err := os.MkdirTemp("", "status")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "status.json")
	if err := os.WriteFile(path, []byte(`{"status":"native","reason":"incompatible","detail":"gpu.name differs"}`), 0o644); err != nil {
		log.Fatal(err)
	}
	st, err := status.Read(path)
	if err != nil {
		log.Fatal(err)
	}
	if st.Status != status.Restored {
		fmt.Println(st.Reason+":", st.Detail)
	}
	// Output: incompatible: gpu.name differs
}
