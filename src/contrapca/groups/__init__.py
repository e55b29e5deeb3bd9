"""`Groups`, and the tables that users pass, checked and split into them."""

from .._util.arrays import canonical
from ._columns import (
    aligned,
    check_names,
    check_same_columns,
    column_names,
    distinct,
    index_names,
    like_table,
    text_names,
)
from ._groups import Groups, Tables, feature_label
from ._split import (
    check_device_table,
    check_table,
    checked_tables,
    column_means,
    refuse_device,
    refuse_devices,
    refuse_missing,
    refuse_others,
    split_groups,
    without_mask,
)
