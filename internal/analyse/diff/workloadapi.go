package diff

import (
	_ "embed"
	"fmt"
	"net/netip"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// workloadAPI are the descriptors of what Istio sends ztunnels, a google.protobuf.FileDescriptorSet: pkg/workloadapi of its module, which has
// more dependencies than this one can have. hack/update-workloadapi.sh writes it.
//
//go:embed workloadapi.binpb
var workloadAPI []byte

// workloadTypes returns its messages, by name.
var workloadTypes = sync.OnceValues(func() (map[protoreflect.FullName]protoreflect.MessageType, error) {
	all, err := typesOf(workloadAPI)
	if err != nil {
		return nil, fmt.Errorf("reading the types of Istio's workload API: %w", err)
	}
	return all, nil
})

// typesOf returns the messages of an encoded google.protobuf.FileDescriptorSet, whose files follow those that they import.
func typesOf(encoded []byte) (map[protoreflect.FullName]protoreflect.MessageType, error) {
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(encoded, &set); err != nil {
		return nil, err
	}
	files := new(protoregistry.Files)
	all := map[protoreflect.FullName]protoreflect.MessageType{}
	for _, f := range set.File {
		file, err := protodesc.NewFile(f, resolver{files})
		if err == nil {
			err = files.RegisterFile(file)
		}
		if err != nil {
			return nil, err
		}
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			all[m.FullName()] = dynamicpb.NewMessageType(m)
		}
	}
	return all, nil
}

// resolver finds the files of a set, and those that every program has.
type resolver struct{ *protoregistry.Files }

func (r resolver) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if file, err := r.Files.FindFileByPath(path); err == nil {
		return file, nil
	}
	return protoregistry.GlobalFiles.FindFileByPath(path)
}

func (r resolver) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if descriptor, err := r.Files.FindDescriptorByName(name); err == nil {
		return descriptor, nil
	}
	return protoregistry.GlobalFiles.FindDescriptorByName(name)
}

// addressFields are bytes that are an address.
var addressFields = map[protoreflect.FullName]bool{
	"istio.workload.Workload.addresses":     true,
	"istio.workload.NetworkAddress.address": true,
	"istio.security.Address.address":        true,
}

// addressText returns the text of a field that is an address.
func addressText(fd protoreflect.FieldDescriptor, b []byte) (text string, ok bool) {
	if !addressFields[fd.FullName()] {
		return "", false
	}
	address, ok := netip.AddrFromSlice(b)
	return address.String(), ok
}

// chosenAnew is a field that the scheduler of each run chooses: the node of a workload.
const chosenAnew protoreflect.FullName = "istio.workload.Workload.node"
