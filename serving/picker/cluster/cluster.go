// Package cluster finds endpoints in Kubernetes: the pods that an InferencePool selects, with its ports.
//
// In: the API server, a namespace, the name of a pool. Out: lists of addresses, at each change. Fails: an API server that cannot be
// reached or refuses at the start. Later it is asked again, and the last list holds.
package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// The resources that are watched.
var (
	pools = schema.GroupVersionResource{Group: "inference.networking.k8s.io", Version: "v1", Resource: "inferencepools"}
	pods  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// resync is the time after which all resources are read again, in case an event was missed.
const resync = 10 * time.Minute

// Watch calls use with the endpoints of a pool, first when all resources are known and then at each change, until ctx ends. Calls do
// not overlap.
func Watch(ctx context.Context, client dynamic.Interface, namespace, pool string, use func(endpoints []string) error, warn func(format string, args ...any)) error {
	informers := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, resync, namespace, nil)
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	on := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() }, DeleteFunc: func(any) { tell() }}
	for _, r := range []schema.GroupVersionResource{pools, pods} {
		if _, err := informers.ForResource(r).Informer().AddEventHandler(on); err != nil {
			return fmt.Errorf("watch %s: %w", r.Resource, err)
		}
	}
	informers.Start(ctx.Done())
	for r, known := range informers.WaitForCacheSync(ctx.Done()) {
		if !known {
			return fmt.Errorf("watch %s: %w", r.Resource, context.Cause(ctx))
		}
	}
	tell()
	var last []string
	for first := true; ; {
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
		list, err := endpoints(informers, namespace, pool)
		if err == nil && !first && slices.Equal(list, last) {
			continue
		}
		if err == nil {
			err = use(list)
		}
		if err != nil {
			warn("the endpoints stay as they are: %v", err)
			continue
		}
		last, first = list, false
	}
}

// endpoints lists the addresses of a pool's pods: each with each port of the pool.
func endpoints(informers dynamicinformer.DynamicSharedInformerFactory, namespace, pool string) ([]string, error) {
	object, err := informers.ForResource(pools).Lister().ByNamespace(namespace).Get(pool)
	if err != nil {
		return nil, fmt.Errorf("read pool: %w", err)
	}
	selector, ports, err := read(object)
	if err != nil {
		return nil, fmt.Errorf("read pool %s: %w", pool, err)
	}
	list, err := informers.ForResource(pods).Lister().ByNamespace(namespace).List(selector)
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var out []string
	for _, object := range list {
		var pod corev1.Pod
		if err := convert(object, &pod); err != nil {
			return nil, fmt.Errorf("read pod: %w", err)
		}
		if !usable(&pod) {
			continue
		}
		for _, port := range ports {
			out = append(out, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port)))
		}
	}
	slices.Sort(out)
	return out, nil
}

// usable reports whether a pod may get requests. A pod that ends has told the picker so already.
func usable(pod *corev1.Pod) bool {
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
	return ready && pod.Status.PodIP != "" && pod.DeletionTimestamp == nil
}

// read returns the selector of a pool, and its ports.
func read(object runtime.Object) (labels.Selector, []int, error) {
	var p struct {
		Spec struct {
			Selector    metav1.LabelSelector `json:"selector"`
			TargetPorts []struct {
				Number int `json:"number"`
			} `json:"targetPorts"`
		} `json:"spec"`
	}
	if err := convert(object, &p); err != nil {
		return nil, nil, err
	}
	if len(p.Spec.Selector.MatchLabels) == 0 || len(p.Spec.TargetPorts) == 0 {
		return nil, nil, fmt.Errorf("it selects no pods, or has no ports")
	}
	selector, err := metav1.LabelSelectorAsSelector(&p.Spec.Selector)
	var ports []int
	for _, port := range p.Spec.TargetPorts {
		ports = append(ports, port.Number)
	}
	return selector, ports, err
}

func convert(object runtime.Object, into any) error {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("an object of type %T", object)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}
