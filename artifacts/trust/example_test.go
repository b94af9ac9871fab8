package trust_test

import (
	"crypto/ed25519"
	"fmt"
	"log"

	"medusa/artifacts/trust"
)

// A signature covers a digest and a version.
func ExampleSign() {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		log.Fatal(err)
	}
	const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	signature := trust.Sign(private, digest, 7)
	fmt.Println(trust.Verify(public, digest, 7, signature) == nil)
	fmt.Println(trust.Verify(public, digest, 6, signature) == nil)
	// Output:
	// true
	// false
}
