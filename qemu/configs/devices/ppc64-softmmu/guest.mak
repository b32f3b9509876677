# Only the devices that a small Linux guest needs
CONFIG_PSERIES=y
CONFIG_POWERNV=n
CONFIG_PCI_DEVICES=n
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_SERIAL=y
# for programs without an operating system
CONFIG_GENERIC_LOADER=y
