package cluster

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

func pool(ports ...any) *unstructured.Unstructured {
	var list []any
	for _, p := range ports {
		list = append(list, map[string]any{"number": p})
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool",
		"metadata": map[string]any{"name": "gpus", "namespace": "ai"},
		"spec":     map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "agent"}}, "targetPorts": list}}}
}

func pod(name, app, ip, ready string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "namespace": "ai", "labels": map[string]any{"app": app}},
		"status":   map[string]any{"podIP": ip, "conditions": []any{map[string]any{"type": "Ready", "status": ready}}}}}
}

func TestWatch(t *testing.T) {
	kinds := map[schema.GroupVersionResource]string{pools: "InferencePoolList", pods: "PodList"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, pool(int64(9101), int64(9102)), pod("a", "agent", "10.0.0.1", "True"),
		pod("b", "agent", "10.0.0.2", "False"), pod("c", "other", "10.0.0.3", "True"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lists := make(chan []string, 9)
	ended := make(chan error, 1)
	go func() {
		ended <- Watch(ctx, client, "ai", "gpus", func(list []string) error { lists <- list; return nil }, t.Logf)
	}()
	want := func(when string, list ...string) {
		t.Helper()
		select {
		case got := <-lists:
			if !slices.Equal(got, list) {
				t.Errorf("%s: %q, want %q", when, got, list)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: nothing", when)
		}
	}
	want("first", "10.0.0.1:9101", "10.0.0.1:9102")
	in := client.Resource(pods).Namespace("ai")
	if _, err := in.Update(ctx, pod("b", "agent", "10.0.0.2", "True"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want("a pod is ready", "10.0.0.1:9101", "10.0.0.1:9102", "10.0.0.2:9101", "10.0.0.2:9102")
	if _, err := client.Resource(pools).Namespace("ai").Update(ctx, pool(int64(9101)), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want("the pool has one port", "10.0.0.1:9101", "10.0.0.2:9101")
	if err := in.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want("a pod is gone", "10.0.0.2:9101")
	ending := pod("b", "agent", "10.0.0.2", "True")
	ending.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	if _, err := in.Update(ctx, ending, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want("a pod ends")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
